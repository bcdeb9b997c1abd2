/* What a crash lost. Place: above models.c, below state.c. */
#include "explorer/run/loss.h"

#include <stdlib.h>

static void hear(void *ctx, uint32_t pending, uint64_t first, uint64_t end)
{
    const loss_watch_t *watch = ctx;
    watch->kept[pending] += end - first;
    if (watch->next != NULL) {
        watch->next->kept(watch->next->ctx, pending, first, end);
    }
}

void loss_begin(loss_watch_t *watch, model_config_t *models, const persist_t *persist)
{
    *watch = (loss_watch_t){.persist = persist, .models = models, .next = models->watch};
    watch->kept = mem_alloc((persist->n_pending + 1U) * sizeof(*watch->kept));
    watch->watch = (model_watch_t){.kept = hear, .ctx = watch};
    models->watch = &watch->watch;
}

loss_t loss_end(loss_watch_t *watch)
{
    const persist_t *persist = watch->persist;
    loss_t loss = {.any = false};
    for (uint32_t i = 0; i < persist->n_pending; i++) {
        if (watch->kept[i] < model_sectors(watch->models, persist_pending(persist, i))) {
            loss.any = true;
            loss.of_earlier |= persist->pending[i] < persist->n_before;
        }
    }
    free(watch->kept);
    return loss;
}
