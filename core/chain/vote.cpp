#include "core/chain/vote.h"
