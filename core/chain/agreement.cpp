#include "core/chain/agreement.h"
