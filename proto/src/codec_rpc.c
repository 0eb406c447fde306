#include "codec_rpc.h"
