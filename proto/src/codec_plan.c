#include "codec_plan.h"
