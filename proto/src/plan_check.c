#include "plan_check.h"
