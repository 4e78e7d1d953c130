/* The invariants of questions to the whole job.
 *
 * 1. Each question ends by its deadline, at the asker and at the coordinator (asks.c has the
 *    asker's clock). It ends when the asker or the coordinator is gone.
 * 2. When it has ended with an answer, every host that was meant has answered whole or is named,
 *    exactly once, and the numbers that come with the end say so.
 * 3. Pieces arrive in order, once, at the asker that asked, under the name of the host that made
 *    them.
 * 4. Of each host no more pieces are under way than its window allows, and no more hosts are asked
 *    at a time: this bounds the bytes at the coordinator. So many questions, of one link and in
 *    all, and the next is told "busy".
 * 5. An agent gets one QUESTION, and its messages for it are bounded by the pieces of its answer.
 * 6. What a node holds about questions is what its askers wait for and what its host answers,
 *    nothing more: so no timer runs and nothing is sent when nobody asks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "sim/world.h"

#define LATE_NS NS_PER_S /* after a deadline: the timer has certainly gone off */

/* ---- what comes to the asker ---- */

/* Names are "h" and the index of the host. */
static bool named_host(const struct world *world, const char *name, uint32_t *ret_index)
{
	uint64_t index;
	if (name[0] != 'h' || str_to_u64(name + 1, &index) < 0 || index >= world->count)
		return false;
	*ret_index = (uint32_t)index;
	return true;
}

static bool is_meant(const struct sim_question *question, const struct member *member)
{
	bool there = member->link || (member->in_round && !member->left);
	bool has_rank = question->ask.rank_count == 0;
	for (uint32_t i = 0; member->in_round && i < member->nproc; i++)
		has_rank |= inquiry_means(&question->ask, member->rank_base + i);
	if (question->ask.kind == ASK_RESTART && member->status != MEMBER_ACTIVE)
		return false;
	return there && has_rank && (!*question->host || str_eq(question->host, member->name));
}

/* A question comes to a host; the coordinator, if it is here, takes it. */
void check_asks_taken(struct world *world, struct host *host, const struct msg_ask *ask)
{
	struct sim_question *question = asks_question(world, ask->ask.args);
	if (!question || !host->node.coordinator || question->state != SIM_ASKING)
		return;
	if (question->taken)
		check_broken(world, "question %u comes to a coordinator twice", question->serial);
	question->taken = true;
	const struct roster *roster = &host->node.coordinator->roster;
	for (size_t i = 0; i < roster->count; i++) {
		const struct member *member = roster->members[i];
		if (!is_meant(question, member))
			continue;
		question->expects[member->id.hi - 1]++;
		question->expected++;
	}
	world_trace(world, "c%u takes question %u to %u hosts", host->index, question->serial,
		    question->expected);
	if (world->options.faults && !world->script)
		faults_provoke(world, host->index);
}

static struct sim_slot *slot_of(struct sim_question *question, uint16_t index)
{
	if (index >= question->slot_count) {
		size_t count = (size_t)index + 1;
		question->slots = mem_grow(question->slots, count, sizeof(*question->slots));
		memset(&question->slots[question->slot_count], 0,
		       (count - question->slot_count) * sizeof(*question->slots));
		question->slot_count = count;
	}
	return &question->slots[index];
}

/* A host that is told to stop after all others answers through the coordinator. */
static bool is_stand_in(const struct sim_question *question, const struct msg_reply *reply)
{
	return question->ask.kind == ASK_STOP && reply->piece.len == 0 && reply->last;
}

/* The host that had the slot is named, and another has it now. */
static bool is_next_host(const struct sim_question *question, const struct sim_slot *slot,
			 const uint32_t content[])
{
	return question->misses[slot->host] > 0 &&
	       (slot->host != content[1] || slot->generation != content[2]);
}

static void check_piece(struct world *world, const struct sim_question *question,
			struct sim_slot *slot, const struct msg_reply *reply, uint32_t host)
{
	uint32_t content[4];
	if (reply->piece.len != sizeof(content)) {
		check_broken(world, "a piece of question %u is not what h%u sent", question->serial,
			     host);
		return;
	}
	memcpy(content, reply->piece.data, sizeof(content));
	if (!slot->open || is_next_host(question, slot, content))
		*slot = (struct sim_slot){ .host = content[1],
					   .generation = content[2],
					   .untaken = slot->untaken,
					   .open = true };
	if (content[0] != question->serial || content[1] != host || slot->host != content[1] ||
	    slot->generation != content[2] || slot->next != content[3])
		check_broken(world,
			     "question %u gets piece %u of h%u for question %u under the name h%u, "
			     "not piece %u of h%u",
			     question->serial, content[3], content[1], content[0], host, slot->next,
			     slot->host);
	slot->next++;
}

static void check_window(struct world *world, struct sim_question *question,
			 const struct sim_slot *slot)
{
	struct question_window window = questions_window(question->ask.kind);
	if (slot->untaken > window.pieces)
		check_broken(world, "%u pieces of h%u are under way to question %u", slot->untaken,
			     slot->host, question->serial);
	if (question->untaken > (uint32_t)window.pieces * window.hosts)
		check_broken(world, "%u pieces are under way to question %u", question->untaken,
			     question->serial);
	world->result->untaken = MAX(world->result->untaken, question->untaken);
}

void check_asks_reply(struct world *world, struct sim_question *question,
		      const struct msg_reply *reply)
{
	uint32_t host;
	if (reply->id != question->serial || !named_host(world, reply->name, &host)) {
		check_broken(world, "question %u gets a reply to %u of '%s'", question->serial,
			     reply->id, reply->name);
		return;
	}
	question->begun[host] = true;
	if (reply->last) {
		question->answers[host]++;
		question->lasts++;
	}
	if (question->answers[host] + question->misses[host] > question->expects[host])
		check_broken(world, "h%u answers question %u twice", host, question->serial);
	if (is_stand_in(question, reply))
		return;
	struct sim_slot *slot = slot_of(question, reply->slot);
	check_piece(world, question, slot, reply, host);
	slot->untaken++;
	question->untaken++;
	check_window(world, question, slot);
	if (reply->last)
		slot->open = false;
}

void check_asks_missed(struct world *world, struct sim_question *question,
		       const struct msg_missed *missed)
{
	uint32_t host;
	if (missed->id != question->serial || !named_host(world, missed->name, &host)) {
		check_broken(world, "question %u misses '%s' of %u", question->serial, missed->name,
			     missed->id);
		return;
	}
	question->misses[host]++;
	question->missed++;
	question->late += missed->why == ASK_MISSED_LATE || missed->why == ASK_MISSED_UNASKED;
	if (question->answers[host] + question->misses[host] > question->expects[host])
		check_broken(world, "h%u is named twice in question %u", host, question->serial);
	uint64_t after_ns = world->now_ns - question->asked_ns;
	bool endless = questions_window(question->ask.kind).endless;
	if (missed->why == ASK_MISSED_LATE &&
	    after_ns + after_ns / 100 < question->ask.timeout_ns / 2)
		check_broken(world, "h%u is late for question %u after %llu ms", host,
			     question->serial, (unsigned long long)(after_ns / NS_PER_MS));
	if (missed->why == ASK_MISSED_UNASKED && !endless &&
	    after_ns + after_ns / 100 < question->ask.timeout_ns)
		check_broken(world, "h%u is not asked question %u", host, question->serial);
	if (missed->why == ASK_MISSED_OLD && !world->hosts[host].old)
		check_broken(world, "h%u is not too old for question %u", host, question->serial);
}

static bool is_accounted_for(const struct sim_question *question, uint32_t host)
{
	if (questions_window(question->ask.kind).endless)
		return question->misses[host] == question->expects[host] || question->begun[host];
	/* A question for a new round asks one of them. */
	return question->ask.kind == ASK_RESTART ||
	       question->answers[host] + question->misses[host] == question->expects[host];
}

static void check_numbers(struct world *world, const struct sim_question *question,
			  const struct msg_ended *ended)
{
	bool restart = question->ask.kind == ASK_RESTART;
	bool endless = questions_window(question->ask.kind).endless;
	if (ended->hosts != (restart ? MIN(question->expected, 1u) : question->expected) ||
	    ended->answered + question->missed != ended->hosts ||
	    (!endless && ended->answered != question->lasts))
		check_broken(world,
			     "question %u ends with %u of %u, not with %u of %u and %u named",
			     question->serial, ended->answered, ended->hosts, question->lasts,
			     question->expected, question->missed);
}

void check_asks_ended(struct world *world, struct sim_question *question,
		      const struct msg_ended *ended)
{
	bool with_answer = ended->why == ASK_ENDED_ALL || ended->why == ASK_ENDED_LATE;
	if (ended->id != question->serial)
		check_broken(world, "question %u gets the end of %u", question->serial, ended->id);
	if (ended->why == ASK_ENDED_NO_ONE && question->expected > 0)
		check_broken(world, "question %u was for %u hosts", question->serial,
			     question->expected);
	uint64_t after_ns = world->now_ns - question->asked_ns;
	if (ended->why == ASK_ENDED_LATE && after_ns + after_ns / 100 < question->ask.timeout_ns)
		check_broken(world, "question %u ends late after %llu ms", question->serial,
			     (unsigned long long)(after_ns / NS_PER_MS));
	if (!world->options.faults && ended->why == ASK_ENDED_LATE && question->late == 0 &&
	    question->untaken == 0 && question->ask.kind != ASK_FOLLOW)
		check_broken(world, "question %u waits for its deadline", question->serial);
	if (!with_answer)
		return;
	world->result->complete++;
	check_numbers(world, question, ended);
	for (uint32_t i = 0; i < world->count; i++)
		if (!is_accounted_for(question, i))
			check_broken(world, "h%u neither answers question %u nor is named", i,
				     question->serial);
}

/* ---- what nodes send and hold ---- */

void check_asks_sent(struct world *world, const struct host *host, const struct msg *msg)
{
	if (world->asker_count == 0 ||
	    (!world->options.faults && world->now_ns > world->asked_until_ns))
		check_broken(world, "h%u sends %s, and nobody asks", host->index,
			     msg_type_name(msg->type));
}

/* QUESTION and the end of it, and for each piece ANSWER and GRANT. */
void check_asks_messages(struct world *world, const struct host *host,
			 const struct sim_answer *answer)
{
	if (answer->messages > 2 + 2 * answer->sent)
		check_broken(world, "%u messages for %u pieces of h%u", answer->messages,
			     answer->sent, host->index);
	if (answer->kind != ASK_FOLLOW)
		world->result->asked_messages =
			MAX(world->result->asked_messages, answer->messages);
}

static uint32_t relays_of(const struct node *node)
{
	uint32_t count = 0;
	for (size_t i = 0; node->asking && i < ASKING_RELAYS; i++)
		count += node->asking->relays[i].id != 0;
	return count;
}

static bool is_passed_on(const struct node *node, uint64_t link)
{
	for (size_t i = 0; node->asking && i < ASKING_RELAYS; i++)
		if (node->asking->relays[i].id && node->asking->relays[i].asker == link)
			return true;
	return false;
}

static uint32_t questions_of(const struct questions *questions, uint64_t link)
{
	uint32_t count = 0;
	for (size_t i = 0; i < QUESTIONS_MAX; i++)
		count += questions->items[i].number && questions->items[i].asker == link;
	return count;
}

/* Each asker here waits for a question that its node has, and no others are there. */
static void check_relays(struct world *world, const struct host *host)
{
	uint32_t passed_on = 0;
	for (uint32_t i = 0; i < world->asker_count; i++) {
		const struct sim_asker *asker = &world->askers[i];
		if (!asker->link || asker->host != host->index)
			continue;
		bool relayed = is_passed_on(&host->node, asker->link);
		if (!relayed &&
		    !(host->node.questions && questions_of(host->node.questions, asker->link)))
			check_broken(world, "h%u has forgotten question %u", host->index,
				     asker->question->serial);
		passed_on += relayed;
	}
	if (passed_on != relays_of(&host->node))
		check_broken(world, "h%u passes on %u questions of %u askers", host->index,
			     relays_of(&host->node), passed_on);
}

static void check_answers(struct world *world, const struct host *host)
{
	const struct node *node = &host->node;
	uint32_t at_node = 0, at_host = 0;
	for (size_t i = 0; i < QUESTIONS_MAX; i++) {
		const struct sim_answer *answer = &host->answers[i];
		at_node += node->asking && node->asking->answers[i].question;
		at_host += answer->question != 0;
	}
	if (at_node != at_host)
		check_broken(world, "h%u makes %u answers, and its node knows of %u", host->index,
			     at_host, at_node);
	if (at_node + relays_of(node) > 0 && node->link_state != NODE_LINKED)
		check_broken(world, "h%u has questions and no coordinator", host->index);
}

/* The link of an asker here, or of an agent elsewhere, is still there. */
static bool asker_lives(const struct world *world, const struct host *host, uint64_t link)
{
	const struct link *wire = net_link(world, link);
	if (link < ASKER_LINK)
		return wire && wire->open[TO_COORDINATOR];
	for (uint32_t i = 0; i < world->asker_count; i++)
		if (world->askers[i].link == link && world->askers[i].host == host->index)
			return true;
	return false;
}

static void check_questions(struct world *world, const struct host *host)
{
	const struct questions *questions = host->node.questions;
	uint64_t now_ns = world_local_ns(world, host);
	bool slept = host->thawed_ns && world->now_ns < host->thawed_ns + LATE_NS;
	for (size_t i = 0; i < QUESTIONS_MAX; i++) {
		const struct question *q = &questions->items[i];
		uint32_t of_asker = questions_of(questions, q->asker);
		if (!q->number)
			continue;
		if (of_asker > QUESTIONS_PER_ASKER)
			check_broken(world, "c%u serves %u questions of one link", host->index,
				     of_asker);
		if (now_ns > ns_add(q->deadline_ns, LATE_NS) && !slept)
			check_broken(world, "c%u has a question beyond its deadline", host->index);
		if (!asker_lives(world, host, q->asker))
			check_broken(world, "c%u serves an asker that is gone", host->index);
	}
}

void check_asks_step(struct world *world, struct host *host)
{
	if (world->asker_count == 0 && (host->node.asking || host->node.questions))
		check_broken(world, "h%u has questions, and nobody asks", host->index);
	if (world->asker_count == 0 || !host->process || world->over)
		return;
	check_relays(world, host);
	check_answers(world, host);
	if (host->node.questions)
		check_questions(world, host);
}
