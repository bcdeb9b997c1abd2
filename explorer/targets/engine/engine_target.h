/** The bundled engine, recovered in this process, for the explorer. */
#ifndef EXPLORER_ENGINE_TARGET_H
#define EXPLORER_ENGINE_TARGET_H

#include "explorer/targets/engine/judge.h"
#include "explorer/targets/target.h"

typedef struct engine_config {
    engine_options_t options; /**< under which images are recovered */
    uint32_t in_full;         /**< of so many images one is scanned in full as well; at least 1 */
} engine_config_t;

/** The config outlives the kind. */
target_kind_t engine_target(const engine_config_t *config);
/** The judge of a target of this kind that is open. */
judge_t *engine_target_judge(const target_t *target);

#endif
