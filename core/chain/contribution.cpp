#include "core/chain/contribution.h"
