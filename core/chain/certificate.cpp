#include "core/chain/committee.h"
