#include "run/explanation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct explanation {
	struct diagnosis *diagnosis; /* of this host; NULL: it is over */
	struct own_question *asker;  /* of the others; NULL: they have answered, or are not asked */
	struct forensics found;
	struct host_answers others;
	size_t world_size;
	diagnosis_fn *on_done;
	void *arg;
};

static void explanation_free(struct explanation *e)
{
	forensics_done(&e->found);
	host_answers_done(&e->others);
	free(e);
}

static void add_host(struct forensics *found, struct host_answer *answer)
{
	struct err err = ERR_INIT;
	if (answer->failed)
		err_set(&err, EIO, "%s", buf_str(&answer->text));
	else
		forensics_read(found, answer->name, buf_str(&answer->text), buf_len(&answer->text),
			       &err);
	if (err.code)
		forensics_miss(found, answer->name, err.msg);
}

/* Judges when nothing is under way any more. The job hangs: no collective is only slow. */
static void conclude(struct explanation *e)
{
	if (e->diagnosis || e->asker)
		return;
	for (size_t i = 0; i < e->others.count; i++)
		add_host(&e->found, &e->others.items[i]);
	if (e->found.answers)
		forensics_judge(&e->found, e->world_size, 0);
	e->on_done(e->arg, &e->found);
	explanation_free(e);
}

static void on_diagnosed(void *arg, struct forensics *found)
{
	struct explanation *e = arg;
	e->diagnosis = NULL;
	e->found = *found;
	forensics_begin(found);
	conclude(e);
}

static void on_answers(void *arg, struct host_answers *answers)
{
	struct explanation *e = arg;
	e->asker = NULL;
	e->others = *answers;
	*answers = HOST_ANSWERS_INIT;
	conclude(e);
}

bool explanation_is_own(const struct inquiry *ask, const struct node_info *self)
{
	return ask->args.len == sizeof(self->id) &&
	       memcmp(ask->args.data, &self->id, sizeof(self->id)) == 0;
}

int explanation_start(struct event_base *base, const struct forensics_question *question,
		      uint64_t timeout_ns, const char *path, struct own_question *asker,
		      const struct node_info *self, diagnosis_fn *on_done, void *arg,
		      struct explanation **ret)
{
	struct explanation *e = NEW(struct explanation);
	*e = (struct explanation){ .asker = asker,
				   .others = HOST_ANSWERS_INIT,
				   .world_size = question->world_size,
				   .on_done = on_done,
				   .arg = arg };
	struct forensics_question here = *question;
	here.world_size = 0; /* the judgement comes later */
	forensics_begin(&e->found);
	int r = diagnosis_start(base, &here, timeout_ns, path, on_diagnosed, e, &e->diagnosis);
	if (r < 0) {
		explanation_free(e);
		return r;
	}
	*ret = e;
	if (asker)
		own_question_ask(asker,
				 &(struct inquiry){ .kind = ASK_COLLECTIVES,
						    .timeout_ns = timeout_ns,
						    .args = bytes_of(&self->id, sizeof(self->id)) },
				 on_answers, e);
	return 0;
}

void explanation_cancel(struct explanation *e)
{
	if (!e)
		return;
	diagnosis_cancel(e->diagnosis);
	if (e->asker)
		own_question_cancel(e->asker);
	explanation_free(e);
}
