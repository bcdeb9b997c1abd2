/** Parser of the compiled fault plan.

Pure text to rules: no I/O, no allocation; used by the preload only.
1. What is not understood or cannot be done is refused with its line number, never ignored: a trial
   whose fault could not fire as asked would pass for a trial that was survived.
2. Every key may be given once. */
#include "faults/plan.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR_MIN 512u
#define SECTOR_MAX 65536u
#define BIT(kind) (1u << (kind))
#define KINDS_MARK BIT(TP_OP_MARK)
#define KINDS_RANGED                                                                               \
    (BIT(TP_OP_READ) | BIT(TP_OP_WRITE) | BIT(TP_OP_SYNC_RANGE) | BIT(TP_OP_TRUNCATE)              \
     | BIT(TP_OP_FALLOCATE))
#define KINDS_FSYNC (BIT(TP_OP_FSYNC) | BIT(TP_OP_FDATASYNC))
#define KINDS_ANY                                                                                  \
    (BIT(TP_OP_WRITE) | KINDS_FSYNC | BIT(TP_OP_SYNC_RANGE) | BIT(TP_OP_TRUNCATE)                  \
     | BIT(TP_OP_FALLOCATE) | BIT(TP_OP_RENAME) | BIT(TP_OP_UNLINK) | BIT(TP_OP_MKDIR)             \
     | BIT(TP_OP_SYNC_DIR) | BIT(TP_OP_LINK) | BIT(TP_OP_SYNC_ALL))

typedef struct word {
    const char *name;
    uint32_t value;
} word_t;

static const word_t plan_kinds[] = {
    {"write", BIT(TP_OP_WRITE)},
    {"read", BIT(TP_OP_READ)},
    {"fsync", KINDS_FSYNC},
    {"sync_range", BIT(TP_OP_SYNC_RANGE)},
    {"truncate", BIT(TP_OP_TRUNCATE)},
    {"fallocate", BIT(TP_OP_FALLOCATE)},
    {"rename", BIT(TP_OP_RENAME)},
    {"unlink", BIT(TP_OP_UNLINK)},
    {"sync_dir", BIT(TP_OP_SYNC_DIR)},
    {"mkdir", BIT(TP_OP_MKDIR)},
    {"link", BIT(TP_OP_LINK)},
    {"sync_all", BIT(TP_OP_SYNC_ALL)},
    {"mark", KINDS_MARK},
    {"any", KINDS_ANY},
    {NULL, 0},
};

static const word_t plan_actions[] = {
    {"kill", TP_ACTION_KILL},           {"drop", TP_ACTION_DROP},
    {"tear", TP_ACTION_TEAR},           {"corrupt", TP_ACTION_CORRUPT},
    {"misdirect", TP_ACTION_MISDIRECT}, {"error", TP_ACTION_ERROR},
    {"short", TP_ACTION_SHORT},         {NULL, 0},
};

static const word_t plan_errors[] = {
    {"EIO", EIO}, {"ENOSPC", ENOSPC}, {"EDQUOT", EDQUOT}, {NULL, 0}};

/* Keys, in the order of the bits of line_t.given. */
enum {
    KEY_KIND,
    KEY_FILE,
    KEY_TEXT,
    KEY_NTH,
    KEY_TIMES,
    KEY_OFFSET,
    KEY_ACTION,
    KEY_WHEN,
    KEY_SECTOR,
    KEY_SECTORS,
    KEY_BYTES,
    KEY_ERRNO,
    KEY_SHIFT,
    KEY_FOLLOWS,
    KEY_COUNT
};

static const char *const plan_keys[KEY_COUNT] = {"kind",   "file",   "text",  "nth",    "times",
                                                 "offset", "action", "when",  "sector", "sectors",
                                                 "bytes",  "errno",  "shift", "follows"};

typedef struct line {
    plan_rule_t *rule;
    plan_error_t *error;
    uint32_t number;
    uint32_t given;
} line_t;

__attribute__((format(printf, 2, 3))) static bool line_refuse(const line_t *line,
                                                              const char *format, ...)
{
    va_list args;
    int used = snprintf(line->error->text, sizeof(line->error->text), "line %u: ", line->number);

    va_start(args, format);
    (void)vsnprintf(line->error->text + used, sizeof(line->error->text) - (size_t)used, format,
                    args);
    va_end(args);
    return false;
}

static bool line_has(const line_t *line, unsigned key)
{
    return (line->given & BIT(key)) != 0;
}

static bool number_read(const char *text, uint64_t *value)
{
    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    char *end = NULL;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0';
}

static bool word_find(const word_t *words, const char *name, uint32_t *value)
{
    for (; words->name != NULL; words++) {
        if (strcmp(words->name, name) == 0) {
            *value = words->value;
            return true;
        }
    }
    return false;
}

static bool text_read(const line_t *line, const char *key, const char *text, char *out)
{
    size_t used = 0;

    while (*text != '\0') {
        char c = *text++;
        if (c == '%') {
            if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1])) {
                return line_refuse(line, "%s: '%%' needs two hexadecimal digits", key);
            }
            char hex[3] = {0};
            memcpy(hex, text, 2);
            text += 2;
            c = (char)strtoul(hex, NULL, 16);
            if (c == '\0') {
                return line_refuse(line, "%s: %%00 is not allowed", key);
            }
        }
        if (used + 1 >= PLAN_TEXT_MAX) {
            return line_refuse(line, "%s: longer than %u bytes", key, PLAN_TEXT_MAX - 1);
        }
        out[used++] = c;
    }
    out[used] = '\0';
    return used > 0 || line_refuse(line, "%s: empty", key);
}

static bool offset_read(const line_t *line, char *text)
{
    plan_rule_t *rule = line->rule;
    char *dash = strchr(text, '-');

    if (dash == NULL) {
        return line_refuse(line, "offset: wants MIN-MAX or MIN-, got '%s'", text);
    }
    *dash = '\0';
    rule->ranged = true;
    rule->offset_max = UINT64_MAX;
    if (!number_read(text, &rule->offset_min)
        || (dash[1] != '\0' && !number_read(dash + 1, &rule->offset_max))
        || rule->offset_max < rule->offset_min) {
        return line_refuse(line, "offset: bad range '%s-%s'", text, dash + 1);
    }
    return true;
}

static bool sectors_read(const line_t *line, char *text)
{
    plan_rule_t *rule = line->rule;

    if (strcmp(text, "all") == 0) {
        rule->keep = PLAN_KEEP_ALL;
    } else if (strcmp(text, "none") == 0) {
        rule->keep = PLAN_KEEP_NONE;
    } else if (strncmp(text, "prefix:", 7) == 0 && number_read(text + 7, &rule->keep_count)) {
        rule->keep = PLAN_KEEP_PREFIX;
    } else if (strncmp(text, "suffix:", 7) == 0 && number_read(text + 7, &rule->keep_count)) {
        rule->keep = PLAN_KEEP_SUFFIX;
    } else if (text[0] != '\0' && strspn(text, "01") == strlen(text)) {
        rule->keep = PLAN_KEEP_MASK;
        rule->mask = text;
        rule->mask_len = strlen(text);
    } else {
        return line_refuse(line,
                           "sectors: wants 0s and 1s, prefix:K, suffix:K, all or none, "
                           "got '%.64s'",
                           text);
    }
    return true;
}

static bool shift_read(const line_t *line, const char *text)
{
    uint64_t value = 0;
    bool negative = text[0] == '-';

    if (!number_read(text + (negative ? 1 : 0), &value) || value == 0 || value > INT64_MAX) {
        return line_refuse(line, "shift: wants a number of bytes other than 0, got '%s'", text);
    }
    line->rule->shift = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static bool when_read(const line_t *line, const char *text)
{
    if (strcmp(text, "before") == 0) {
        line->rule->when = PLAN_WHEN_BEFORE;
    } else if (strcmp(text, "after") == 0) {
        line->rule->when = PLAN_WHEN_AFTER;
    } else {
        return line_refuse(line, "when: wants before or after, got '%s'", text);
    }
    return true;
}

static bool times_read(const line_t *line, const char *text)
{
    if (strcmp(text, "forever") == 0) {
        line->rule->times = UINT64_MAX;
        return true;
    }
    return (number_read(text, &line->rule->times) && line->rule->times > 0)
           || line_refuse(line, "times: wants a number from 1 or forever, got '%s'", text);
}

static bool sector_read(const line_t *line, const char *text)
{
    uint64_t value = 0;

    if (!number_read(text, &value) || value < SECTOR_MIN || value > SECTOR_MAX
        || (value & (value - 1)) != 0) {
        return line_refuse(line, "sector: wants a power of two from 512 to 65536, got '%s'", text);
    }
    line->rule->sector = (uint32_t)value;
    return true;
}

static bool value_read(const line_t *line, unsigned key, char *text)
{
    plan_rule_t *rule = line->rule;
    uint32_t code = 0;

    switch (key) {
    case KEY_KIND:
        return word_find(plan_kinds, text, &rule->kinds)
               || line_refuse(line, "kind: unknown '%s'", text);
    case KEY_FILE:
    case KEY_TEXT:
        return text_read(line, plan_keys[key], text, rule->pattern);
    case KEY_NTH:
        return (number_read(text, &rule->nth) && rule->nth > 0)
               || line_refuse(line, "nth: wants a number from 1, got '%s'", text);
    case KEY_TIMES:
        return times_read(line, text);
    case KEY_OFFSET:
        return offset_read(line, text);
    case KEY_ACTION:
        return word_find(plan_actions, text, &rule->action)
               || line_refuse(line, "action: unknown '%s'", text);
    case KEY_WHEN:
        return when_read(line, text);
    case KEY_SECTOR:
        return sector_read(line, text);
    case KEY_SECTORS:
        return sectors_read(line, text);
    case KEY_BYTES:
        rule->keep = PLAN_KEEP_BYTES;
        return number_read(text, &rule->keep_count)
               || line_refuse(line, "bytes: wants a number, got '%s'", text);
    case KEY_ERRNO:
        if (!word_find(plan_errors, text, &code)) {
            return line_refuse(line, "errno: wants EIO, ENOSPC or EDQUOT, got '%s'", text);
        }
        rule->error = (int)code;
        return true;
    case KEY_SHIFT:
        return shift_read(line, text);
    default:
        rule->follows = strcmp(text, "yes") == 0;
        return rule->follows || line_refuse(line, "follows: wants yes, got '%s'", text);
    }
}

/* What each action may be given besides kind, file or text, nth, times, offset, follows and
action. */
static uint32_t action_keys(uint32_t action)
{
    switch (action) {
    case TP_ACTION_KILL:
        return BIT(KEY_WHEN) | BIT(KEY_SECTOR) | BIT(KEY_SECTORS) | BIT(KEY_BYTES);
    case TP_ACTION_TEAR:
        return BIT(KEY_SECTOR) | BIT(KEY_SECTORS) | BIT(KEY_BYTES);
    case TP_ACTION_CORRUPT:
        return BIT(KEY_SECTOR) | BIT(KEY_SECTORS);
    case TP_ACTION_MISDIRECT:
        return BIT(KEY_SHIFT);
    case TP_ACTION_ERROR:
        return BIT(KEY_ERRNO);
    case TP_ACTION_SHORT:
        return BIT(KEY_BYTES);
    default:
        return 0;
    }
}

static bool action_check(const line_t *line)
{
    const plan_rule_t *rule = line->rule;
    bool is_write = rule->kinds == BIT(TP_OP_WRITE);
    bool fits = is_write || (rule->action == TP_ACTION_DROP && rule->kinds == KINDS_FSYNC)
                || (rule->action == TP_ACTION_ERROR && rule->kinds != KINDS_MARK);
    bool shaped = line_has(line, KEY_SECTORS) || line_has(line, KEY_BYTES);

    if (rule->action != TP_ACTION_KILL && !fits) {
        return line_refuse(line, "this action cannot be done to this kind of operation");
    }
    if (!is_write && (shaped || line_has(line, KEY_SECTOR))) {
        return line_refuse(line, "sector, sectors and bytes are for kind=write only");
    }
    if (line_has(line, KEY_WHEN) && shaped) {
        return line_refuse(line, "when= and sectors= or bytes= exclude each other");
    }
    if (line_has(line, KEY_SECTORS) && line_has(line, KEY_BYTES)) {
        return line_refuse(line, "sectors= and bytes= exclude each other");
    }
    if (rule->action == TP_ACTION_KILL && line_has(line, KEY_TIMES)) {
        return line_refuse(line, "times= has no meaning with action=kill");
    }
    if (rule->action == TP_ACTION_TEAR && !shaped) {
        return line_refuse(line, "action=tear needs sectors= or bytes=");
    }
    if (rule->action == TP_ACTION_CORRUPT && !shaped) {
        return line_refuse(line, "action=corrupt needs sectors=");
    }
    if (rule->action == TP_ACTION_MISDIRECT && rule->shift == 0) {
        return line_refuse(line, "action=misdirect needs shift=");
    }
    if (rule->action == TP_ACTION_SHORT && (!line_has(line, KEY_BYTES) || rule->keep_count == 0)) {
        return line_refuse(line, "action=short needs bytes= of at least 1");
    }
    return true;
}

static bool line_check(const line_t *line)
{
    const uint32_t common = BIT(KEY_KIND) | BIT(KEY_FILE) | BIT(KEY_TEXT) | BIT(KEY_NTH)
                            | BIT(KEY_TIMES) | BIT(KEY_OFFSET) | BIT(KEY_ACTION) | BIT(KEY_FOLLOWS);
    const plan_rule_t *rule = line->rule;
    bool is_mark = rule->kinds == KINDS_MARK;
    for (unsigned key = 0; key < KEY_COUNT; key++) {
        bool needed = key == KEY_KIND || key == KEY_ACTION || key == KEY_NTH
                      || key == (is_mark ? KEY_TEXT : KEY_FILE);
        if (needed && !line_has(line, key)) {
            return line_refuse(line, "%s= is missing", plan_keys[key]);
        }
    }
    if (line_has(line, is_mark ? KEY_FILE : KEY_TEXT)) {
        return line_refuse(line, "text= is for kind=mark, file= for all others");
    }
    if (rule->ranged && (rule->kinds & ~KINDS_RANGED) != 0) {
        return line_refuse(line, "offset= needs a kind that has an offset");
    }
    uint32_t extra = line->given & ~common & ~action_keys(rule->action);
    for (unsigned key = 0; key < KEY_COUNT; key++) {
        if ((extra & BIT(key)) != 0) {
            return line_refuse(line, "%s= has no meaning with this action", plan_keys[key]);
        }
    }
    return action_check(line);
}

static bool token_read(line_t *line, char *token)
{
    char *value = strchr(token, '=');

    if (value == NULL) {
        return line_refuse(line, "wants key=value, got '%.64s'", token);
    }
    *value++ = '\0';
    for (unsigned key = 0; key < KEY_COUNT; key++) {
        if (strcmp(token, plan_keys[key]) == 0) {
            if (line_has(line, key)) {
                return line_refuse(line, "%s= is given twice", token);
            }
            line->given |= BIT(key);
            return value_read(line, key, value);
        }
    }
    return line_refuse(line, "unknown key '%.64s'", token);
}

static bool line_read(plan_t *plan, char *text, uint32_t number, plan_error_t *error)
{
    line_t line = {.error = error, .number = number};
    char *rest = NULL;
    char *token = strtok_r(text, " \t\r", &rest);

    if (token == NULL || token[0] == '#') {
        return true;
    }
    if (strcmp(token, "fault") != 0) {
        return line_refuse(&line, "unknown directive '%.64s'", token);
    }
    if (plan->count == TP_FAULT_RULES_MAX) {
        return line_refuse(&line, "more than %u faults", TP_FAULT_RULES_MAX);
    }
    line.rule = &plan->rules[plan->count];
    *line.rule = (plan_rule_t){.sector = 512, .error = EIO, .times = 1};
    while ((token = strtok_r(NULL, " \t\r", &rest)) != NULL) {
        if (!token_read(&line, token)) {
            return false;
        }
    }
    if (!line_check(&line)) {
        return false;
    }
    if (line.rule->follows && plan->count == 0) {
        return line_refuse(&line, "follows= needs a fault before it");
    }
    plan->count++;
    plan->kinds |= line.rule->kinds;
    return true;
}

bool plan_parse(char *text, plan_t *plan, plan_error_t *error)
{
    plan->count = 0;
    plan->kinds = 0;
    uint32_t number = 1;
    while (text != NULL) {
        char *next = strchr(text, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        if (!line_read(plan, text, number, error)) {
            return false;
        }
        text = next;
        number++;
    }
    return true;
}

uint64_t plan_match_path(const plan_t *plan, const char *path)
{
    uint64_t matches = 0;

    for (uint32_t i = 0; i < plan->count; i++) {
        const plan_rule_t *rule = &plan->rules[i];
        if (rule->kinds != KINDS_MARK && fnmatch(rule->pattern, path, 0) == 0) {
            matches |= UINT64_C(1) << i;
        }
    }
    return matches;
}

uint64_t plan_match_mark(const plan_t *plan, const char *text, uint64_t len)
{
    uint64_t matches = 0;

    for (uint32_t i = 0; i < plan->count; i++) {
        const plan_rule_t *rule = &plan->rules[i];
        size_t want = strlen(rule->pattern);
        if (rule->kinds == KINDS_MARK && want <= len && memcmp(rule->pattern, text, want) == 0) {
            matches |= UINT64_C(1) << i;
        }
    }
    return matches;
}
