/* The table of file systems.

Place: beside fs_event.c, below persist.c. */
#include "disk/fs_profile.h"

#include <stddef.h>
#include <string.h>

#define N_PROFILES (sizeof(PROFILES) / sizeof(PROFILES[0]))

static const fs_profile_t PROFILES[] = {
    {"posix", "what the standard promises, and no more", FS_ANY_PART, FS_NOTHING, FS_SIZE_FIRST,
     false},
    {"ext4-ordered", "ext4 as it is mounted by default: data=ordered, delayed allocation",
     FS_A_BEGINNING, FS_EARLIER_NAMES, FS_ZEROS_FIRST, false},
    {"ext4-writeback", "ext4 mounted with data=writeback", FS_A_BEGINNING, FS_EARLIER_NAMES,
     FS_SIZE_FIRST, false},
    {"ext4-nodelalloc", "ext4 mounted with nodelalloc", FS_A_BEGINNING, FS_EARLIER_NAMES,
     FS_IN_LAST_BLOCK, true},
    {"xfs", "xfs", FS_A_BEGINNING, FS_EARLIER_NAMES, FS_WITH_BYTES, false},
    {"btrfs", "btrfs", FS_A_BEGINNING, FS_OWN_NAMES, FS_WITH_BYTES, false},
};

const fs_profile_t *fs_profile_default(void)
{
    return &PROFILES[0];
}

const fs_profile_t *fs_profile_at(uint32_t i)
{
    return i < N_PROFILES ? &PROFILES[i] : NULL;
}

const fs_profile_t *fs_profile_find(const char *name)
{
    for (uint32_t i = 0; i < N_PROFILES; i++) {
        if (strcmp(PROFILES[i].name, name) == 0) {
            return &PROFILES[i];
        }
    }
    return NULL;
}

const char *fs_order_text(fs_order_t order)
{
    return order == FS_ANY_PART ? "any part" : "a beginning";
}

const char *fs_along_text(fs_along_t along)
{
    static const char *const TEXTS[] = {"nothing", "the file's own names", "earlier names"};
    return TEXTS[along];
}

const char *fs_growth_text(fs_growth_t growth)
{
    static const char *const TEXTS[] = {"never", "zeros in the last block", "zeros",
                                        "zeros or old bytes"};
    return TEXTS[growth];
}
