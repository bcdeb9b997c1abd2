/* What the kernel says of its memory. Place: below external.c. */
#include "explorer/targets/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define MEMORY_MIN_KIB ((uint64_t)256 << 10)
#define SPACE_MIN_BYTES ((uint64_t)16 << 20)

/** The number behind this word of a file of /proc; `missing` where it has no such line. */
static uint64_t number_of(const char *path, const char *word, uint64_t missing)
{
    FILE *file = fopen(path, "re");
    char line[128];
    size_t len = strlen(word);
    uint64_t found = missing;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, word, len) == 0 && (line[len] == ' ' || line[len] == ':')) {
            found = strtoull(line + len + 1, NULL, 10);
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

uint64_t machine_oom_kills(void)
{
    return number_of("/proc/vmstat", "oom_kill", 0);
}

bool machine_is_short(uint64_t oom_kills)
{
    struct statvfs fs;
    return machine_oom_kills() != oom_kills
           || number_of("/proc/meminfo", "MemAvailable", UINT64_MAX) < MEMORY_MIN_KIB
           || (statvfs("/tmp", &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize < SPACE_MIN_BYTES);
}
