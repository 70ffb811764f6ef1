#include "core/chain/history.h"
