/** Reads and extends the environment. Above io.c only. */
#include "faults/environment.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "faults/io.h"

const char *environment_get(const char *name)
{
    size_t len = strlen(name);

    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (strncmp(*at, name, len) == 0 && (*at)[len] == '=' && (*at)[len + 1] != '\0') {
            return *at + len + 1;
        }
    }
    return NULL;
}

bool environment_put(const char *name, const char *value)
{
    size_t count = 0;
    size_t text_len = strlen(name) + strlen(value) + 2;
    while (environ != NULL && environ[count] != NULL) {
        count++;
    }
    char **copy;
    copy = io_map_memory((count + 2) * sizeof(*copy) + text_len);
    if (copy == NULL) {
        return false;
    }
    char *text = (char *)(copy + count + 2);
    (void)snprintf(text, text_len, "%s=%s", name, value);
    copy[0] = text;
    if (count > 0) {
        memcpy(copy + 1, environ, count * sizeof(*copy));
    }
    environ = copy;
    return true;
}
