#include "core/chain/outbox.h"
