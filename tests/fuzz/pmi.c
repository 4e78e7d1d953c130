/* Whatever the ranks of a host send to their launcher, in whatever pieces, and whatever the union
 * of a fence has: no crash, one answer a request, and the bounds hold. */
#include <stdlib.h>
#include <string.h>

#include "core/pmi/pmi.h"

#define RANKS 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Two bytes lead each piece: who sends it, and how long it is. */
static void play(struct pmi *pmi, struct pmi_actions *actions, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at + 2 <= size;) {
		size_t who = data[at] % (RANKS + 2), len = MIN((size_t)data[at + 1], size - at - 2);
		struct bytes piece = bytes_of(data + at + 2, len);
		at += 2 + len;
		if (who < RANKS)
			pmi_take(pmi, who, piece, actions);
		else
			pmi_union(pmi, pmi->seq, (uint32_t)len * (who > RANKS ? 1 : 2),
				  (uint32_t)buf_len(&pmi->received), piece, actions);
		for (size_t i = 0; i < actions->count; i++)
			if (actions->items[i].rank >= RANKS ||
			    strlen(actions->items[i].text) >= PMI_TEXT_MAX)
				abort();
		actions->count = 0;
		for (size_t i = 0; i < RANKS; i++) {
			if (buf_len(&pmi->ranks[i].in) > PMI_LINE_MAX + UINT8_MAX)
				abort();
			buf_clear(&pmi->ranks[i].out);
		}
		if (pmi->keyvals.size > KEYVALS_SIZE_MAX || pmi->waiting > RANKS)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	uint32_t nodes = 1 + data[0] % 2;
	struct pmi pmi = { .ranks = NULL };
	struct pmi_actions actions = { .items = NULL };
	AUTO(buf_done) struct buf missing = BUF_INIT;
	const struct pmi_config config = { .rank_base = 2,
					   .count = RANKS,
					   .world_size = RANKS * nodes,
					   .nodes = nodes,
					   .kvsname = "k",
					   .host = "h" };
	pmi_begin(&pmi, &config, &actions);
	actions.count = 0;
	play(&pmi, &actions, data + 1, size - 1);
	pmi_missing(&pmi, &missing);
	pmi_done(&pmi);
	pmi_actions_done(&actions);
	return 0;
}
