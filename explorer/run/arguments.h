/** The command line of tornpage-explore. */
#ifndef EXPLORER_ARGUMENTS_H
#define EXPLORER_ARGUMENTS_H

#include "explorer/run/runner.h"
#include "explorer/targets/command/verify_command.h"
#include "explorer/targets/engine/engine_target.h"
#include "explorer/targets/external_target.h"

enum { EXIT_CLEAN, EXIT_VIOLATION, EXIT_USAGE, EXIT_NOTHING };

#define EXIT_DEAF 11 /**< a canary was not condemned: no verdict */

#define AT_MAX 1024U

/** What is asked for. It must stay where it is: parts point to others. */
typedef struct arguments {
    const char *trace;
    const char *allowed;
    const char *kinds;      /**< of statements; NULL: nothing is known of them */
    const char *chosen;     /**< file with states that were chosen; NULL: none */
    const char *base;       /**< folder with the files that the run found; NULL: none */
    engine_config_t engine; /**< of the target, if it is the engine */
    campaign_t campaign;
    plan_range_t range;
    uint64_t at[AT_MAX]; /**< of range */
    order_limits_t order;
    uint64_t suspects[AT_MAX];    /**< of order */
    order_page_t accused[AT_MAX]; /**< of order */
    run_limits_t run;
    const char *slice_file; /**< where a slice is written; NULL: all is run and told */
    const char *merge;      /**< file with slices to merge; NULL: none */
    const char *scratch;
    external_config_t external; /**< verifier NULL: the engine */
    verify_command_t command;   /**< of target command */
    verifier_t verifier;        /**< the command as one */
    path_set_t ignored;         /**< files that are no part of an image */
    site_map_t sites;           /**< of writes, if any is said */
    const char *write_sites;    /**< file with those of single writes; NULL: there is none */
    bool canaries;              /**< make them as well, and judge them */
    bool json;
    bool help;
    bool list_models;
    bool list_fs;
} arguments_t;

extern const char ARGUMENTS_HELP[];

/** Prints one line. @return EXIT_USAGE */
int arguments_usage(const char *what, const char *value);
/** @return EXIT_CLEAN, or EXIT_USAGE after a line on standard error */
int arguments_parse(int argc, char **argv, arguments_t *args);

#endif
