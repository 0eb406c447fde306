#include "job_file.h"
