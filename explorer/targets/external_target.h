/** A target that reads real files, for the explorer. */
#ifndef EXPLORER_EXTERNAL_TARGET_H
#define EXPLORER_EXTERNAL_TARGET_H

#include "explorer/targets/external.h"
#include "explorer/targets/target.h"

/** The config outlives the kind. */
target_kind_t external_target(const external_config_t *config);

#endif
