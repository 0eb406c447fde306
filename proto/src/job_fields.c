#include "job_fields.h"
