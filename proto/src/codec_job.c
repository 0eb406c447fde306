#include "codec_job.h"
