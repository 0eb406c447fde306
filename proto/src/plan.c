#include <skrull/plan.h>
