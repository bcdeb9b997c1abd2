/* The command `options`: what --option takes.

Place: below main.c. */
#include <stdio.h>

#include "cli/cli.h"

int cli_options(const cli_args_t *args)
{
    json_t *all = json_array();
    option_text_t option;

    for (size_t i = 0; options_describe(i, &option); i++) {
        if (args->json) {
            (void)json_array_append_new(all, json_pack("{s:s, s:s, s:s, s:s}", "name", option.name,
                                                       "values", option.values, "default",
                                                       option.by_default, "what", option.what));
        } else {
            (void)printf("%s = %s (%s): %s\n", option.name, option.by_default, option.values,
                         option.what);
        }
    }
    if (args->json) {
        cli_print_json(json_pack("{s:b, s:o}", "ok", true, "options", all));
    } else {
        json_decref(all);
    }
    return cli_finish(EXIT_OK);
}
