#include "core/chain/messages.h"
