/* One host of a batch on many: runs what it is given and sends back what came of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/random.h"
#include "batch/many/cargo.h"
#include "batch/many/many_private.h"

#define SPARE_PLACES 64		       /* beyond what may run and wait here */
#define UNSENT_MAX ((size_t)256 << 10) /* output waits in its file while this much waits */

static_assert(WORK_VARIANTS_MAX == REPEAT_SIDES_MAX, "every variant of an order can be sent");

/* A place for an order. */
struct task {
	bool used;
	uint32_t order, lease;
};

/* A file that an order made. Its content is kept, whatever becomes of its name. */
struct made {
	int fd;
	uint32_t number, mode; /* number: in the order's list */
	uint64_t size, sent;
	bool over; /* the last piece is sent */
};

/* A result that is not confirmed. */
struct parcel {
	struct list link;  /* all */
	struct list queue; /* those to be sent */
	uint32_t order, lease, number;
	uint8_t flags;
	const struct batch_order
		*held; /* by what follows this order (--cleanup); NULL: it is not */
	uint64_t start_ns;
	struct buf line;
	int fds[2];
	uint64_t bytes[2];
	uint64_t sent[2];
	struct made *made;
	size_t made_count;
};

struct post {
	struct many *many;
	struct agent_id id;
	struct hand hand;
	struct hand_actions actions;
	struct event *timer;
	struct order_source source;
	struct orders orders;
	struct batch_order *places;
	struct task *tasks;
	size_t count, variants; /* places, and orders at most in each */
	struct list parcels, outgoing;
	size_t held; /* parcels */
	struct cargo *cargo;
	bool shares; /* the coordinator's directory is this one: no file moves */
	struct buf in;
	uint32_t results; /* of the result at hand: its number, as hand counts */
};

static void step(struct post *post, struct hand_event event);

/* ---- places ---- */

static size_t place_of(const struct post *post, const struct batch_order *order)
{
	return (size_t)(order - post->places);
}

static struct task *find_task(struct post *post, uint32_t lease)
{
	for (size_t i = 0; i < post->count; i++)
		if (post->tasks[i].used && post->tasks[i].lease == lease)
			return &post->tasks[i];
	return NULL;
}

/* A place that nothing runs in: what was discarded may not have ended yet. */
static struct task *free_task(struct post *post)
{
	for (size_t i = 0; i < post->count; i++)
		if (!post->tasks[i].used && post->places[i].state != BATCH_RUNNING)
			return &post->tasks[i];
	return NULL;
}

static const struct order_extra *extra_of(const struct post *post, const struct task *task)
{
	return post->orders.items[task - post->tasks].extra;
}

static bool must_fetch(const struct post *post, const struct task *task)
{
	const struct order_extra *extra = extra_of(post, task);
	return !post->shares && extra && extra->transfer.count > 0;
}

static void release_files(struct post *post, const struct task *task)
{
	const struct order_extra *extra = extra_of(post, task);
	if (extra)
		cargo_release(post->cargo, task->lease, extra->cleanup);
}

/* ---- sending ---- */

static void send_bytes(struct post *post, const struct buf *data)
{
	peer_links_send(post->many->links, buf_data(data), buf_len(data));
}

static void send_msg(struct post *post, struct work_msg msg)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	work_put(&data, &msg);
	send_bytes(post, &data);
}

static bool has_room(const struct post *post)
{
	return peer_links_unsent(post->many->links) < UNSENT_MAX;
}

/* The next piece of its output; false when there is none left. */
static bool send_output(struct post *post, struct parcel *parcel)
{
	AUTO_FREE char *piece = mem_alloc(WORK_OUTPUT_MAX);
	for (uint32_t i = 0; i < 2; i++) {
		uint64_t left = parcel->bytes[i] - parcel->sent[i];
		if (parcel->fds[i] < 0 || left == 0)
			continue;
		ssize_t n = pread(parcel->fds[i], piece, MIN(left, WORK_OUTPUT_MAX),
				  (off_t)parcel->sent[i]);
		if (n <= 0) { /* the file is shorter than it was */
			parcel->sent[i] = parcel->bytes[i];
			continue;
		}
		parcel->sent[i] += (uint64_t)n;
		send_msg(post, (struct work_msg){ .type = WORK_OUTPUT,
						  .order = parcel->order,
						  .lease = parcel->lease,
						  .number = i,
						  .text = piece,
						  .len = (size_t)n });
		return true;
	}
	return false;
}

/* The same of the files it made. */
static bool send_made(struct post *post, struct parcel *parcel)
{
	for (size_t i = 0; i < parcel->made_count; i++) {
		struct made *made = &parcel->made[i];
		if (made->over)
			continue;
		AUTO_FREE char *piece = mem_alloc(WORK_OUTPUT_MAX);
		uint64_t left = made->size - made->sent;
		ssize_t n = pread(made->fd, piece, MIN(left, WORK_OUTPUT_MAX), (off_t)made->sent);
		struct work_msg msg = { .type = WORK_FILE,
					.order = parcel->order,
					.lease = parcel->lease,
					.number = made->number,
					.count = made->mode,
					.value = made->sent,
					.text = piece,
					.len = (size_t)MAX(n, 0) };
		made->sent += msg.len;
		made->over = n <= 0 || made->sent == made->size;
		msg.flags = made->over ? WORK_FINAL : 0;
		send_msg(post, msg);
		return true;
	}
	return false;
}

static void send_parcels(struct post *post)
{
	while (!list_empty(&post->outgoing) && has_room(post)) {
		struct parcel *parcel = list_entry(post->outgoing.next, struct parcel, queue);
		if (send_output(post, parcel) || send_made(post, parcel))
			continue;
		list_unlink(&parcel->queue);
		send_msg(post, (struct work_msg){ .type = WORK_RESULT,
						  .order = parcel->order,
						  .lease = parcel->lease,
						  .number = parcel->number,
						  .flags = parcel->flags,
						  .value = parcel->start_ns,
						  .text = buf_data(&parcel->line),
						  .len = buf_len(&parcel->line) });
	}
}

void post_drained(struct post *post)
{
	send_parcels(post);
}

static void free_parcel(struct parcel *parcel)
{
	list_unlink(&parcel->link);
	list_unlink(&parcel->queue);
	buf_done(&parcel->line);
	fd_close(&parcel->fds[0]);
	fd_close(&parcel->fds[1]);
	for (size_t i = 0; i < parcel->made_count; i++)
		fd_close(&parcel->made[i].fd);
	free(parcel->made);
	free(parcel);
}

static void drop_parcels(struct post *post, uint32_t lease, uint32_t number)
{
	list_foreach(link, &post->parcels)
	{
		struct parcel *parcel = list_entry(link, struct parcel, link);
		if (parcel->lease != lease || (number != UINT32_MAX && parcel->number != number))
			continue;
		post->held -= parcel->held != NULL;
		free_parcel(parcel);
	}
}

static void queue_parcel(struct post *post, uint32_t lease, uint32_t number)
{
	list_foreach(link, &post->parcels)
	{
		struct parcel *parcel = list_entry(link, struct parcel, link);
		if (parcel->lease != lease || parcel->number != number)
			continue;
		parcel->sent[0] = parcel->sent[1] = 0;
		for (size_t i = 0; i < parcel->made_count; i++) {
			parcel->made[i].sent = 0;
			parcel->made[i].over = false;
		}
		list_unlink(&parcel->queue);
		list_append(&post->outgoing, &parcel->queue);
	}
	send_parcels(post);
}

static void send_hello(struct post *post)
{
	const struct many *many = post->many;
	const struct batch_plan *plan = many->plan;
	AUTO(buf_done) struct buf text = BUF_INIT;
	AUTO_FREE struct work_hello *hello = NEW(struct work_hello);
	hello->id = post->id;
	hello->facts = (struct host_facts){ .cores = MAX(corepool_max_width(&plan->pool), 1),
					    .max_width = MAX(corepool_max_width(&plan->pool), 1),
					    .jobs = plan->jobs,
					    .memory = procfs_memory_available(),
					    .files = true,
					    .trees = true };
	memcpy(hello->name, many->name, sizeof(hello->name));
	if (many->config->features)
		snprintf(hello->features, sizeof(hello->features), "%s", many->config->features);
	for (size_t i = 0; i < post->hand.count && hello->held_count < WORK_HELD_MAX; i++)
		hello->held[hello->held_count++] = post->hand.leases[i].lease;
	work_put_hello(&text, hello);
	send_msg(post, (struct work_msg){ .type = WORK_HELLO,
					  .value = post->hand.term,
					  .text = buf_data(&text),
					  .len = buf_len(&text) });
}

/* ---- what hand wants ---- */

static void discard(struct post *post, uint32_t lease)
{
	struct task *task = find_task(post, lease);
	drop_parcels(post, lease, UINT32_MAX);
	if (!task)
		return;
	release_files(post, task);
	task->used = false;
	runner_post(post->many->runner,
		    &(struct batch_event){ .type = BATCH_DISCARD,
					   .order = &post->places[task - post->tasks] });
}

static void fetch_files(struct post *post, uint32_t lease)
{
	const struct task *task = find_task(post, lease);
	cargo_fetch(post->cargo, task->order, lease, &extra_of(post, task)->transfer);
}

static void stop(struct post *post, enum worklist_halt how)
{
	struct batch_event event = { .type = how == WORKLIST_DRAIN ? BATCH_DRAIN
								   : BATCH_INTERRUPT };
	runner_post(post->many->runner, &event);
	if (how == WORKLIST_KILL)
		runner_post(post->many->runner, &event);
}

static void act(struct post *post, const struct hand_action *action)
{
	struct work_msg msg = { .order = action->order, .lease = action->lease };
	struct task *task;
	switch (action->type) {
	case HAND_DO_HELLO:
		send_hello(post);
		break;
	case HAND_DO_BEAT:
		msg.type = WORK_BEAT;
		msg.value = action->cookie;
		send_msg(post, msg);
		break;
	case HAND_DO_STARTED:
		msg.type = WORK_STARTED;
		send_msg(post, msg);
		break;
	case HAND_DO_RESULT:
		queue_parcel(post, action->lease, action->number);
		break;
	case HAND_DO_RETURNED:
		msg.type = WORK_RETURNED;
		send_msg(post, msg);
		break;
	case HAND_DO_RECALLED:
		msg.type = WORK_RECALLED;
		send_msg(post, msg);
		break;
	case HAND_DO_FETCH:
		fetch_files(post, action->lease);
		break;
	case HAND_DO_RUN: /* it was filled in when it came */
		task = find_task(post, action->lease);
		runner_post(post->many->runner,
			    &(struct batch_event){ .type = BATCH_OFFER,
						   .order = &post->places[task - post->tasks] });
		break;
	case HAND_DO_UNQUEUE:
	case HAND_DO_DISCARD:
		discard(post, action->lease);
		break;
	case HAND_DO_FORGET:
		drop_parcels(post, action->lease, action->number);
		break;
	case HAND_DO_STOP:
		stop(post, action->stop);
		break;
	case HAND_DO_HANG_UP:
		log_warn("the coordinator does not answer: searching for it again");
		many_orphaned(post->many);
		peer_links_hang_up(post->many->links);
		break;
	}
}

static void step(struct post *post, struct hand_event event)
{
	struct hand_actions actions = { .items = NULL };
	hand_step(&post->hand, &event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(post, &actions.items[i]);
	hand_actions_done(&actions);
	uint64_t deadline_ns = hand_deadline_ns(&post->hand);
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	if (deadline_ns == NS_NEVER)
		event_del(post->timer);
	else
		event_add(post->timer, &left);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	step(arg, (struct hand_event){ HAND_EV_TIMER });
}

/* ---- files ---- */

/* A file that only the coordinator could have made is here. */
static bool shares_directory(const struct post *post, const struct work_msg *welcome)
{
	AUTO_FREE char *mark = mem_strndup(welcome->text, welcome->len);
	return cargo_sees(post->cargo, mark);
}

/* What it made is kept open, so that the name can go. */
static void collect_files(struct post *post, const struct task *task, struct parcel *parcel,
			  struct result *result)
{
	const struct order_extra *extra = extra_of(post, task);
	if (!extra || extra->returns.count == 0 || post->shares)
		return;
	parcel->made = NEW_ARRAY(struct made, extra->returns.count);
	for (size_t i = 0; i < extra->returns.count; i++) {
		struct made made = { .number = (uint32_t)i };
		struct err err = ERR_INIT;
		made.fd = cargo_open(post->cargo, extra->returns.items[i], extra->cleanup,
				     &made.size, &made.mode, &err);
		if (made.fd >= 0) {
			parcel->made[parcel->made_count++] = made;
		} else if (result->reason == REASON_OK) {
			result->reason = REASON_FILES;
			result_miss(result, "files", err.msg);
		}
	}
}

static void on_ask(void *arg, const struct work_msg *fetch)
{
	send_msg(arg, *fetch);
}

static void on_here(void *arg, uint32_t lease)
{
	step(arg, (struct hand_event){ HAND_EV_FILES, .lease = lease });
}

static uint32_t next_number(const struct post *post, uint32_t lease)
{
	for (size_t i = 0; i < post->hand.count; i++)
		if (post->hand.leases[i].lease == lease)
			return post->hand.leases[i].results;
	return 0;
}

static struct parcel *add_parcel(struct post *post, const struct task *task)
{
	struct parcel *parcel = NEW(struct parcel);
	*parcel = (struct parcel){ .order = task->order,
				   .lease = task->lease,
				   .number = next_number(post, task->lease),
				   .fds = { -1, -1 } };
	list_init(&parcel->queue);
	list_append(&post->parcels, &parcel->link);
	return parcel;
}

/* It cannot run. */
static void on_failed(void *arg, uint32_t number UNUSED, uint32_t lease, const char *why)
{
	struct post *post = arg;
	struct task *task = find_task(post, lease);
	AUTO(result_done) struct result result = RESULT_INIT;
	if (!task)
		return;
	size_t place = (size_t)(task - post->tasks);
	struct parcel *parcel = add_parcel(post, task);
	ending_set_order(&result, &post->orders.items[place], 0, post->places[place].item.width);
	result.attempt = post->places[place].losses + 1;
	result.reason = REASON_FILES;
	result.status = (struct exit_status){ .kind = EXIT_UNKNOWN };
	result.node = mem_strdup(post->many->name);
	clock_iso(clock_wall_ns(), result.start);
	result_miss(&result, "files", why);
	parcel->start_ns = clock_wall_ns();
	parcel->flags = WORK_FINAL;
	result_write(&result, &parcel->line);
	task->used = false;
	release_files(post, task);
	step(post, (struct hand_event){ HAND_EV_RESULT, .lease = lease, .final = true });
}

static const struct cargo_handler cargo_handler = { .on_ask = on_ask,
						    .on_here = on_here,
						    .on_failed = on_failed };

/* ---- what the coordinator says ---- */

static int take_order(struct post *post, const struct work_msg *msg, struct err *err)
{
	AUTO(orders_done) struct orders list = ORDERS_INIT;
	struct task *task = free_task(post);
	const struct batch_part *part = post->many->config->part;
	int r = part ? orders_add_line(&list, part->order, strlen(part->order), 0, err)
		     : work_get_orders(msg->text, msg->len, &list, err);
	if (r < 0)
		return r;
	if (list.count > post->variants)
		return err_set(err, EPROTO,
			       "an order with variants: --ab must be given on all hosts");
	if (find_task(post, msg->lease))
		return 0;
	if (!task)
		return err_set(err, EPROTO, "more orders than this host can hold");
	size_t place = (size_t)(task - post->tasks);
	struct batch_order *todo = &post->places[place];
	for (size_t i = 0; i < list.count; i++) {
		orders_renew(&post->orders, place + i * post->count);
		post->orders.items[place + i * post->count] = list.items[i];
	}
	uint32_t variants = list.count > 1 ? (uint32_t)list.count : 0;
	list.count = 0;
	*task = (struct task){ true, msg->order, msg->lease };
	*todo = (struct batch_order){ .item.index = (uint32_t)place, .number = msg->order };
	post->many->hooks->fill(post->many->arg, &post->orders.items[place], variants, post->count,
				todo);
	todo->is_canary = msg->value == WORK_CANARY;
	todo->losses = (uint8_t)MIN(msg->number, (uint32_t)UINT8_MAX);
	todo->run = (int32_t)MIN(msg->count, (uint32_t)MAX(todo->runs - 1, 0));
	todo->state = BATCH_FREE;
	step(post, (struct hand_event){ HAND_EV_GIVEN, .order = msg->order, .lease = msg->lease,
					.files = must_fetch(post, task) });
	if (post->hand.count == 0 || post->hand.leases[post->hand.count - 1].lease != msg->lease)
		task->used = false; /* it was not taken */
	return 0;
}

static int take_msg(struct post *post, const struct work_msg *msg, struct err *err)
{
	struct hand_event event = { .order = msg->order,
				    .lease = msg->lease,
				    .number = msg->number };
	switch (msg->type) {
	case WORK_WELCOME:
		event.type = HAND_EV_WELCOME;
		event.term = msg->value;
		post->shares = shares_directory(post, msg);
		event_del(post->many->patience);
		break;
	case WORK_GIVE:
		return take_order(post, msg, err);
	case WORK_ACK:
		event.type = HAND_EV_ACK;
		break;
	case WORK_DROP:
		event.type = HAND_EV_DROP;
		break;
	case WORK_RECALL:
		event.type = HAND_EV_RECALL;
		event.count = msg->count;
		break;
	case WORK_STOP:
		if (msg->count >= WORKLIST_HALT_COUNT)
			return err_set(err, EPROTO, "a STOP of an unknown kind");
		event.type = HAND_EV_STOP;
		event.stop = (enum worklist_halt)msg->count;
		break;
	case WORK_ANSWERED:
		event.type = HAND_EV_ANSWERED;
		event.cookie = msg->value;
		break;
	case WORK_PIECE:
		return cargo_take(post->cargo, msg, err);
	case WORK_BYE:
		if (!post_had_coordinator(post))
			log_warn("the batch was over when this host came to it");
		many_end(post->many, (int)MIN(msg->count, (uint32_t)UINT8_MAX));
		return 0;
	default:
		return err_set(err, EPROTO, "a message in the wrong direction");
	}
	step(post, event);
	return 0;
}

int post_take(struct post *post, const void *data, size_t len, struct err *err)
{
	struct work_msg msg;
	size_t size, used = 0;
	buf_append(&post->in, data, len);
	/* Messages are handled from a buffer of their own: they may lead back here. */
	struct buf in = post->in;
	post->in = BUF_INIT;
	int r;
	while ((r = work_next(buf_data(&in) + used, buf_len(&in) - used, &msg, &size, err)) > 0 &&
	       (r = take_msg(post, &msg, err)) >= 0)
		used += size;
	buf_consume(&in, used);
	buf_append(&in, buf_data(&post->in), buf_len(&post->in));
	buf_done(&post->in);
	post->in = in;
	return r < 0 ? r : 0;
}

/* ---- links ---- */

void post_up(struct post *post)
{
	buf_clear(&post->in);
	cargo_stop(post->cargo);
	step(post, (struct hand_event){ HAND_EV_LINK_UP });
}

void post_down(struct post *post)
{
	list_foreach(link, &post->outgoing) list_unlink(link);
	cargo_stop(post->cargo);
	step(post, (struct hand_event){ HAND_EV_LINK_DOWN });
}

void post_coordinates(struct post *post)
{
	step(post, (struct hand_event){ HAND_EV_COORDINATES });
}

void post_interrupt(struct post *post, enum worklist_halt how)
{
	step(post, (struct hand_event){ HAND_EV_STOP, .stop = how });
}

/* ---- what the runner says ---- */

static void on_started(void *arg, const struct batch_order *order)
{
	struct post *post = arg;
	const struct task *task = &post->tasks[place_of(post, order)];
	if (task->used)
		step(post, (struct hand_event){ HAND_EV_STARTED, .lease = task->lease });
}

static void on_ended(void *arg, struct ending *ending)
{
	const struct post *post = arg;
	const struct task *task = &post->tasks[place_of(post, ending->from)];
	ending->lease = task->used ? task->lease : 0;
}

/* The final result of an order can go. */
static void end_task(struct post *post, struct task *task, struct parcel *parcel,
		     const struct batch_order *order)
{
	uint32_t lease = task->lease;
	if (order->state == BATCH_FAILED) /* be it because of its cleanup */
		parcel->flags &= (uint8_t)~WORK_OK;
	task->used = false;
	release_files(post, task);
	step(post, (struct hand_event){ HAND_EV_RESULT, .lease = lease, .final = true });
}

static void on_measured(void *arg, struct ending *ending)
{
	struct post *post = arg;
	struct task *task = &post->tasks[place_of(post, ending->from)];
	if (!task->used || task->lease != ending->lease)
		return; /* it was discarded */
	bool over = ending->final || ending->unrun;
	struct parcel *parcel = add_parcel(post, task);
	parcel->start_ns = ending->start_wall_ns;
	parcel->bytes[0] = ending->result.out.bytes;
	parcel->bytes[1] = ending->result.err_out.bytes;
	parcel->fds[0] = fd_take(&ending->fds[0]);
	parcel->fds[1] = fd_take(&ending->fds[1]);
	if (over && !ending->unrun)
		collect_files(post, task, parcel, &ending->result);
	parcel->flags = (uint8_t)((over ? WORK_FINAL : 0) |
				  (ending->result.reason == REASON_OK ? WORK_OK : 0) |
				  (ending->unrun ? WORK_UNRUN : 0));
	result_write(&ending->result, &parcel->line);
	/* Its cleanup command runs: the order is over with that. */
	if (over && ending->from->state == BATCH_RUNNING) {
		parcel->held = ending->from;
		post->held++;
		return;
	}
	if (over)
		end_task(post, task, parcel, ending->from);
	else
		step(post, (struct hand_event){ HAND_EV_RESULT, .lease = task->lease });
}

void post_stepped(struct post *post)
{
	if (post->held == 0)
		return;
	list_foreach(link, &post->parcels)
	{
		struct parcel *parcel = list_entry(link, struct parcel, link);
		if (!parcel->held || parcel->held->state == BATCH_RUNNING)
			continue;
		const struct batch_order *order = parcel->held;
		parcel->held = NULL;
		post->held--;
		end_task(post, &post->tasks[place_of(post, order)], parcel, order);
		post_stepped(post); /* anew: the list may have changed */
		return;
	}
}

/* The coordinator sends what it has. */
static void on_fetch(void *arg UNUSED, struct batch_order *order UNUSED)
{
}

static const struct order_source_ops source_ops = {
	.started = on_started,
	.ended = on_ended,
	.measured = on_measured,
	.fetch = on_fetch,
};

struct order_source *post_source(struct post *post)
{
	return &post->source;
}

/* ---- life ---- */

struct post *post_new(struct many *many)
{
	struct post *post = NEW(struct post);
	post->many = many;
	post->cargo = cargo_new(&cargo_handler, post);
	random_bytes(&post->id, sizeof(post->id));
	hand_init(&post->hand, &(struct hand_config){ many->period_ns, many->lease_ns });
	list_init(&post->parcels);
	list_init(&post->outgoing);
	post->count = 2 * (size_t)many->plan->jobs + DEAL_AHEAD_MAX + SPARE_PLACES;
	post->places = mem_alloc(post->count * sizeof(*post->places));
	post->tasks = mem_alloc(post->count * sizeof(*post->tasks));
	post->variants = many->config->ab ? WORK_VARIANTS_MAX : 1;
	for (size_t i = 0; i < post->count * post->variants; i++)
		orders_append(&post->orders);
	const struct worklist_opts opts = { .deadline_ns = NS_NEVER, .open = true };
	worklist_init(&post->source.list, &opts, post->places, post->count);
	post->source.orders = &post->orders;
	post->source.variant_step = post->count;
	post->source.ops = &source_ops;
	post->source.arg = post;
	return post;
}

void post_free(struct post *post)
{
	if (!post)
		return;
	list_foreach(link, &post->parcels) free_parcel(list_entry(link, struct parcel, link));
	if (post->timer)
		event_free(post->timer);
	cargo_free(post->cargo);
	hand_done(&post->hand);
	worklist_done(&post->source.list);
	orders_done(&post->orders);
	free(post->places);
	free(post->tasks);
	buf_done(&post->in);
	free(post);
}

void post_begin(struct post *post)
{
	post->timer = evtimer_new(runner_base(post->many->runner), on_timer, post);
}

bool post_had_coordinator(const struct post *post)
{
	return post->hand.term != 0;
}
