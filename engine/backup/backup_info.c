/* The file "backup_info": one sector, so that it is there whole or not at all.

Place: beside backup.c; api/ reads it before it opens a directory.

    0 magic(4) 4 state(4) 8 start LSN(8) 16 end LSN(8) 24 zero 508 CRC-32C of what is before */
#include "backup/backup_info.h"

#include <string.h>

#include "base/crc32c.h"
#include "base/mach.h"

#define INFO_MAGIC 0x5450424BU /* "TPBK" */
#define INFO_STATE 4
#define INFO_START 8
#define INFO_END 16
#define INFO_ZERO 24
#define INFO_CRC (SECTOR_SIZE - 4)

static bool info_decode(const byte *block, backup_info_t *out)
{
    static const byte ZERO[INFO_CRC - INFO_ZERO];
    uint32_t state = mach_read_4(block + INFO_STATE);

    if (mach_read_4(block) != INFO_MAGIC || mach_read_4(block + INFO_CRC) != crc32c(block, INFO_CRC)
        || (state != BACKUP_COPIED && state != BACKUP_PREPARED)
        || memcmp(block + INFO_ZERO, ZERO, sizeof(ZERO)) != 0) {
        return false;
    }
    out->state = (backup_state_t)state;
    out->start_lsn = mach_read_8(block + INFO_START);
    out->end_lsn = mach_read_8(block + INFO_END);
    return true;
}

dberr_t backup_info_read(env_t *env, backup_info_t *out)
{
    os_file_t *file = NULL;
    dberr_t err = env_open(env, BACKUP_INFO_NAME, OS_OPEN, &file);

    *out = (backup_info_t){.state = BACKUP_NONE};
    bool log = false;
    if (err == DB_NOT_FOUND) {
        err = env_exists(env, BACKUP_LOG_NAME, &log);
        out->state = log ? BACKUP_UNFINISHED : BACKUP_NONE;
        return err;
    }
    TRY(err);
    byte block[SECTOR_SIZE] = {0};
    size_t n_read = 0;
    err = env_read(env, file, 0, block, sizeof(block), &n_read);
    env_close(env, file);
    if (err == DB_SUCCESS && !info_decode(block, out)) {
        out->state = BACKUP_UNFINISHED;
    }
    return err;
}

dberr_t backup_info_write(env_t *env, const backup_info_t *info)
{
    os_file_t *file = NULL;
    dberr_t err = env_open(env, BACKUP_INFO_NAME, OS_OPEN, &file);

    if (err == DB_NOT_FOUND) {
        err = env_open(env, BACKUP_INFO_NAME, OS_CREATE_NEW, &file);
    }
    TRY(err);
    byte block[SECTOR_SIZE] = {0};
    mach_write_4(block, INFO_MAGIC);
    mach_write_4(block + INFO_STATE, (uint32_t)info->state);
    mach_write_8(block + INFO_START, info->start_lsn);
    mach_write_8(block + INFO_END, info->end_lsn);
    mach_write_4(block + INFO_CRC, crc32c(block, INFO_CRC));
    err = env_write(env, file, 0, block, sizeof(block));
    AND_THEN(err, env_sync(env, file));
    env_close(env, file);
    return err;
}

dberr_t backup_info_sync(env_t *env)
{
    os_file_t *file = NULL;
    dberr_t err = env_open(env, BACKUP_INFO_NAME, OS_OPEN, &file);

    AND_THEN(err, env_sync(env, file));
    env_close(env, file);
    return err;
}
