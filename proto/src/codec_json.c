#include "codec_json.h"
