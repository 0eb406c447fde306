#include "codec_wire.h"
