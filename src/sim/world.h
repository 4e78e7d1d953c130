/* The simulated world: hosts, their processes and worker groups, the event queue. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "base/heap.h"
#include "core/node/node.h"
#include "sim/rng.h"
#include "sim/sim.h"

#define SIM_STEPS 11 /* steps that workers tell: fewer than this */

enum happening {
	HAPPEN_NEVER,
	HAPPEN_BOOT,	    /* the process on `host` starts */
	HAPPEN_NODE,	    /* its node's timer */
	HAPPEN_GROUP,	    /* its group's timer, or the end of a worker */
	HAPPEN_PUMP,	    /* the first packet of `link` in direction `dir` arrives */
	HAPPEN_ANSWER,	    /* of a probe: `index`, `answer`, `ballot` */
	HAPPEN_CONNECTED,   /* to `index`, as the node asked for with its connection `link` */
	HAPPEN_NOT_LINKED,  /* that could not be made */
	HAPPEN_UNREACHABLE, /* `link`, as its agent believes */
	HAPPEN_BROKEN,	    /* `link` is torn, as its agent hears */
	HAPPEN_FAULT,
	HAPPEN_PROVOKED, /* a fault aimed at `host` */
	HAPPEN_HEAL,
	HAPPEN_ELECTION,
	HAPPEN_LEADER, /* `host` gets a message of the arbiter: `index`, `epoch`, `until_ns`, `past`
			*/
	HAPPEN_RECORDED,  /* and its answer to RECORD: `epoch` */
	HAPPEN_ASKER,	  /* the asker `index` does its next thing */
	HAPPEN_CHECKED,	  /* the checks of `host` have ended */
	HAPPEN_MEASURED,  /* it has measured the wire to `probe`, as PAIR number `index` says */
	HAPPEN_ANSWERING, /* `host` sends pieces of its answers */
	HAPPEN_STEP,	  /* a worker of `host` is done with a step */
	HAPPEN_NOTICE,	  /* `host` gets notice to leave, or to save */
	HAPPEN_LOOK,	  /* `host` looks at the steps of its workers */
	HAPPEN_SET_OUT,	  /* a host has started workers of the round `index` */
	HAPPEN_HUSH,	  /* workers have been silent for the time-out, or somebody should know */
	HAPPEN_STRIDE,	  /* all workers of the round `index` are done with a step */
};

/* Embedded ones are reused; the others are freed after they have happened. */
struct happening_event {
	struct heap_node node;
	enum happening what;
	bool embedded;
	uint32_t host;
	uint32_t generation; /* of the host's process; events for one that is gone are dropped */
	uint64_t link;
	int dir;
	uint32_t index;
	uint32_t probe;
	enum finder_answer answer;
	struct ballot ballot;
	uint64_t epoch;
	uint64_t until_ns; /* on the host's clock */
	struct recorded_end past;
};

#define WORLD_BEGIN_NS NS_PER_S /* of virtual time: 0 is "never" in places */
#define SIM_NPROC_MAX 3
#define SIM_NAMERS 4 /* more coordinators do not live at once */

/* A process of a host's warden. */
struct sim_process {
	uint64_t ends_ns; /* NS_NEVER: it does not end on its own */
	int code;	  /* its exit code, -1: it cannot be started */
	int signal;	  /* that makes it end before; 0: none */
	bool alive;
};

/* What it does there, in worlds with notices. */
struct sim_stepper {
	struct worker_page *page; /* owned */
	bool asks;
	uint64_t step;	  /* that it is in, or asks about */
	uint64_t next_ns; /* when it is done with it, or asks again */
	bool waits;	  /* for a decision */
	uint64_t waits_since_ns;
	bool leaving;	/* it saves, then ends */
	bool tells;	/* that it has saved */
	uint32_t acted; /* the serial number of the last notice on which it acted */
};

#define SIM_ROLES 3 /* host i has role i % SIM_ROLES */

/* What a host has to answer (asks.c). */
struct sim_answer {
	uint32_t question; /* 0: free */
	uint16_t slot;
	uint32_t serial;
	enum ask_kind kind;
	uint32_t total, sent; /* pieces */
	uint32_t messages;    /* to and from this host about it */
	uint64_t next_ns;     /* no piece before */
};

/* What the workers of a host keep (stash.c), newest first. */
struct sim_keep {
	struct sim_slot_kept {
		struct kept_state state;
		uint64_t contents;
	} slots[KEPT_STATES];
	uint64_t contents; /* of the last state */
	uint32_t rank_base, world_size;
};

struct host {
	uint32_t index;
	uint32_t min_nodes, max_nodes;
	int32_t node_rank; /* given, -1: none */
	bool up;	   /* has power */
	bool process;	   /* muster runs on it */
	uint32_t generation;
	int64_t clock_offset_ns, clock_ppm;
	uint64_t slow_ns;
	uint64_t booted_ns, frozen_until_ns, thawed_ns, reset_ns;
	struct node node;
	/* its agent has ended: the process stays for the others at most */
	bool ended;
	bool stopped;		    /* by its user */
	bool must_stop, must_renew; /* asked for, to be done after the step that said so */
	uint64_t connection;	    /* counts CONNECTs: the result of an older one is dropped */
	uint16_t store_port;	    /* the node's last one */
	uint64_t term;		    /* tells the coordinator here from all others */
	struct ballot term_ballot;  /* it formed last */
	bool term_heard;	    /* of a round, before it formed one or by forming one */
	bool term_charged;	    /* a restart since the last one */
	uint32_t term_rounds;	    /* it formed for membership */
	uint64_t term_ns;
	uint32_t leader;	 /* as heard from the arbiter */
	uint64_t arbiter_lag_ns; /* delay of the arbiter's messages */
	bool group_alive;
	bool stuck; /* its group cannot be killed */
	struct ballot group_ballot;
	size_t group_round; /* its record */
	struct group group;
	struct sim_process workers[SIM_NPROC_MAX], orphans;
	uint64_t empty_ns; /* when the warden reports EMPTY; NS_NEVER: something is left */
	struct sim_stepper steppers[SIM_NPROC_MAX];
	struct stop_plan shown; /* to its workers */
	struct happening_event node_timer, group_timer, answer_timer, step_timer;
	struct sim_keep keep;
	bool old; /* its version does not know questions */
	struct sim_answer answers[QUESTIONS_MAX];
	int lame;		       /* what is wrong with it (checks.c) */
	bool excluded;		       /* it never gets workers */
	uint64_t named_by[SIM_NAMERS]; /* terms of the last coordinators that named it */
	uint32_t named_count;
	bool has_formed;       /* a round in this step, */
	uint32_t fit_outside;  /* without so many that are fit */
	bool bad_inside;       /* it is in that round and was known to be bad */
	struct sim_gait *gait; /* owned; NULL: its workers tell no steps */
	uint64_t hush_ns;      /* its workers fall silent then (hushes.c); NS_NEVER: they do not */
	bool hush_told;
	struct happening_event hush_timer;
};

struct packet {
	struct packet *next;
	bool end; /* FIN */
	uint64_t arrives_ns;
	struct node_info *node; /* JOIN's, owned */
	unsigned char *bytes;	/* that the message borrows, owned */
	struct msg *msg;	/* right-sized, owned */
};

enum { TO_COORDINATOR, TO_AGENT };

struct link {
	uint64_t id;
	/* where packets of a direction go to: [TO_COORDINATOR] is the coordinator's */
	uint32_t host[2];
	uint32_t generation[2];
	uint64_t greeted_ns; /* on its clock */
	bool open[2];	     /* the end at host[dir] */
	struct packet *first[2], *last[2];
	uint64_t lag_ns[2], lag_until_ns; /* extra delay of what is sent until then */
	uint64_t retry_ns[2];
	/* what the agent sends arrives so far apart, whatever is cut; 0: not so */
	uint64_t spacing_ns, arrived_ns;
	struct happening_event pump[2];
};

/* What the holder of a group rank was assigned. */
struct seat {
	uint32_t host, nproc;
	uint32_t rank_base, role_rank_base, role_world_size;
	bool started;
};

struct round_record {
	struct ballot ballot;
	uint64_t term; /* of its coordinator */
	uint32_t nodes, world_size, restarts;
	struct seat *seats;  /* by group rank */
	uint64_t charged_by; /* the term that charged a restart for it */
	bool ended_by_members;
	bool unaware;	       /* its coordinator had lost its memory of the rounds before */
	uint32_t done, failed; /* groups */
	struct stop_plan
		acted;	       /* the last one on which a worker acted; the step is that worker's */
	uint32_t acted_before; /* the serial number of the one before that */
	uint32_t alive;
	uint16_t master_port;
	char master_host[MSG_HOST_MAX];
	bool goes_on;		/* a member has started, */
	uint64_t contents;	/* with this state; 0: none */
	uint64_t step, step_ns; /* that its workers are in (gaits.c), and since when */
	uint32_t quiet_steps;	/* long after the last fault */
	uint64_t late_term;	/* the coordinator that has named its slow worker; 0: none */
};

/* Worlds in which little goes wrong, but that at the worst moment (scripts.c). */
enum sim_script {
	SCRIPT_NONE,
	SCRIPT_WIDOW,
	SCRIPT_TORN,
	SCRIPT_SHRINK,
	SCRIPT_LOST,
	SCRIPT_OUTCAST,
	SCRIPT_FENCE,
	SCRIPT_STRAY,
	SCRIPT_STALE,
	SCRIPT_LATE,
	SCRIPT_THAW,
	SCRIPT_REBORN,
	SCRIPT_RIVALS,
	SCRIPT_RELIC,
	SCRIPT_COUNT,
};

struct world {
	struct sim_options options;
	struct rng rng;
	struct heap queue;
	uint64_t now_ns;
	uint64_t busy_steps; /* in the millisecond that begins with busy_ns */
	uint64_t busy_ns;
	struct buf *trace;
	struct sim_result *result;
	struct host *hosts;
	uint32_t count;
	enum sim_mode mode;
	uint32_t endpoints;
	uint32_t min_nodes, max_nodes, max_restarts;
	bool by_progress; /* only attempts without a new step use the restarts up */
	uint64_t join_timeout_ns, lost_timeout_ns, last_call_ns;
	uint64_t scale_up_delay_ns, close_timeout_ns;
	struct pace pace;
	bool misfit;	    /* a host has another MIN:MAX than the others */
	bool misfit_formed; /* and has been in a round */
	bool noise;	    /* an hour of agents that come and go */
	bool gentle;	    /* no process dies or is stopped */
	enum sim_script script;
	uint64_t work_ns;			 /* the longest run of a group */
	uint32_t failure_percent, stuck_percent; /* of groups */
	uint32_t stray_percent;			 /* of JOINs are under way for seconds */
	uint32_t malice_percent;		 /* share of decisions that provoke a fault */
	uint64_t retry_max_ns; /* how long a cut network may take to notice that it has healed */
	struct link **links;
	size_t link_count, link_cap;
	bool *cut; /* cut[from * count + to] */
	bool *arbiter_cut;
	uint32_t cuts;
	uint32_t arbiter_leader, arbiter_generation;
	uint64_t arbiter_epoch, arbiter_seen_ns;
	bool fenced; /* the arbiter's lease decides, not a majority */
	struct recorded_end arbiter_past;
	uint64_t next_term;
	uint32_t processes; /* started so far */
	uint64_t faults_end_ns;
	uint32_t amnesia;	       /* processes that ended without LEAVE, perhaps members */
	uint32_t running;	       /* processes */
	uint32_t boots;		       /* to come */
	bool closed;		       /* an agent got CLOSED */
	struct ballot last;	       /* the latest round with whose end the job was closed */
	bool any_left;		       /* a worker left because of a notice */
	bool heard_done, heard_failed; /* and what it said */
	struct cause first_cause;      /* of FAILED, as the first agent heard it */
	bool heard_left, heard_all;    /* of DONE: workers left as agreed, or all is done */
	bool confirmed;		       /* a round was formed on top of a confirmed one */
	bool over;		       /* later rounds belong to another job */
	struct round_record *rounds;
	size_t round_count, round_cap;
	uint32_t groups_alive;
	size_t latest_round;	   /* that a group started */
	struct node_actions spare; /* memory for the next step */
	uint32_t depth;		   /* steps of a host within its step */
	struct rng check_rng;	   /* of checks */
	bool checking, striking;   /* nodes check themselves; hosts collect strikes */
	bool pairing;		   /* and measure the wires between them */
	struct sim_asker *askers;
	uint32_t asker_count;
	uint64_t asker_links;		 /* so far */
	struct sim_question **questions; /* by serial number, from 1 */
	size_t question_count, question_cap;
	bool notices; /* workers take steps and may get notice */
	struct rng notice_rng;
	uint64_t step_ns; /* the length of a step */
	bool lockstep;	  /* workers wait for each other in every step */
	uint32_t cadence; /* they ask after every so many */
	bool some_never_ask;
	uint64_t asked_until_ns; /* no message about questions is sent after that */
	bool gaits;		 /* workers tell steps, and hosts compare them */
	struct rng gait_rng;
	uint64_t gait_ns;   /* the length of a step */
	uint32_t slow_host; /* its first worker is slow; UINT32_MAX: none is */
	bool in_turn;	    /* else each worker is last in its turn */
	bool hushes;	    /* workers fall silent */
	struct rng hush_rng;
	uint32_t loud_host; /* its workers do not; UINT32_MAX: all do */
};

/* world.c */
void world_init(struct world *world, const struct sim_options *options, struct buf *trace,
		struct sim_result *result);
void world_run(struct world *world);
void world_done(struct world *world);

struct happening_event *world_at(struct world *world, uint64_t at_ns, enum happening what,
				 uint32_t host);
void world_arm(struct world *world, struct happening_event *event, uint64_t at_ns);
uint64_t world_local_ns(const struct world *world, const struct host *host);
bool world_frozen(const struct world *world, const struct host *host);
void world_trace(struct world *world, const char *fmt, ...) PRINTF_LIKE(2, 3);
uint64_t world_ns(const struct world *world, const struct host *host, uint64_t local_ns);

/* host.c */
void host_boot(struct world *world, struct host *host);
/* How long workers may live without answers of their coordinator. */
uint64_t host_death_ns(const struct world *world, uint32_t index);
uint64_t host_longest_death_ns(const struct world *world);
void host_end_process(struct world *world, struct host *host,
		      bool power); /* power: no peer is notified */
void host_step(struct world *world, struct host *host, const struct node_event *event);
void host_tell(struct world *world, struct host *host, const struct agent_event *event);

/* net.c */
uint64_t net_latency_ns(struct world *world, const struct host *to);
void net_probe(struct world *world, struct host *host, uint32_t index, uint32_t probe);
void net_connect(struct world *world, struct host *host, uint32_t index);
void net_connected(struct world *world, struct host *host, uint32_t index);
void net_send(struct world *world, const struct host *from, uint64_t link, const struct msg *msg);
void net_close(struct world *world, const struct host *from, uint64_t link, bool silently);
/* All links of agents elsewhere to the coordinator of `host`. */
void net_close_all(struct world *world, const struct host *host, bool silently);
void net_pump(struct world *world, struct link *link, int dir);
void net_reset(struct world *world, struct link *link);
void net_break(struct world *world, struct link *link, int dir);     /* only host[dir] hears */
void net_half_open(struct world *world, struct link *link, int dir); /* host[dir] hears of it */
struct link *net_link(const struct world *world, uint64_t id);
bool net_live(const struct world *world, const struct host *agent);
void net_done(struct world *world);

/* clocks.c */
int64_t clocks_wall_shift(const struct host *host);
void clocks_check(struct world *world, const struct host *host);

/* workers.c */
void workers_start(struct world *world, struct host *host, const struct agent_action *action);
void workers_stop(struct world *world, struct host *host, int signal); /* 0: the usual one */
void workers_condemn(struct world *world, struct host *host); /* the first that runs: it hangs */
void workers_kill(struct world *world, struct host *host);
void workers_gone(struct world *world, struct host *host); /* together with their warden */
void workers_happen(struct world *world, struct host *host);

/* stash.c */
void stash_begin(struct world *world, struct host *host, const struct msg_formed *formed);
void stash_work(struct host *host); /* until the round ends here */
void stash_read(const struct host *host, struct kept_state ret_states[KEPT_STATES]);
void stash_joins(struct world *world, const struct host *host, const struct kept *kept);
void stash_formed(struct world *world, const struct coordinator *c);

/* faults.c */
void faults_start(struct world *world);
void faults_next(struct world *world);
void faults_provoke(struct world *world,
		    uint32_t host); /* a coordinator that has just made a decision */
void faults_provoked(struct world *world, struct host *host);
void faults_heal(struct world *world);
void faults_freeze(struct world *world, struct host *host, uint64_t length_ns);
void faults_cut(struct world *world, uint32_t a, uint32_t b);
void faults_stray(struct world *world, struct link *link); /* its agent is about to send JOIN */

/* scripts.c */
void scripts_choose(struct world *world);
void scripts_start(struct world *world);		      /* with the world */
void scripts_begin(struct world *world);		      /* some seconds later */
void scripts_joins(struct world *world, struct link *link);   /* its agent is about to send JOIN */
void scripts_plan(struct world *world, struct host *host);    /* the ends of its workers */
void scripts_decided(struct world *world, struct host *host); /* its coordinator, something */
void scripts_strike(struct world *world, struct host *host);  /* as it asked for when it decided */

/* arbiter.c */
#define ARBITER_TICK_NS NS_PER_S
#define ARBITER_TTL_NS (10 * NS_PER_S)
uint64_t arbiter_ttl_ns(const struct world *world);
void arbiter_elect(struct world *world);
void arbiter_heard(struct world *world, struct host *host, const struct happening_event *event);
void arbiter_record(struct world *world, struct host *host, const struct recorded_end *end);

/* asks.c */
#define ASKER_LINK ((uint64_t)1 << 62) /* ids of askers' links begin here */
#define ASK_SERIAL_LEN sizeof(uint32_t)

enum sim_ended {
	SIM_ASKING,
	SIM_ENDED,     /* ENDED came */
	SIM_ABANDONED, /* the asker left */
};

/* One question of an asker, to the end of the world. */
struct sim_question {
	struct inquiry ask; /* without arguments */
	char host[ASK_NAME_MAX];
	uint32_t serial; /* the arguments of the question, at every host */
	uint64_t asked_ns;
	enum sim_ended state;
	bool taken; /* a coordinator has it */
	uint32_t expected, missed, lasts, late;
	/* By host. A host that came back may be on the roster twice. */
	uint8_t *expects, *misses, *answers;
	bool *begun;
	struct sim_slot {
		uint32_t host, generation, next; /* of the piece that comes next */
		uint32_t untaken;
		bool open;
	} * slots;
	size_t slot_count;
	uint32_t untaken;
};

struct sim_asker {
	uint32_t index, host;
	uint64_t link; /* 0: it asks nothing */
	uint32_t left; /* questions to come */
	struct sim_question *question;
	uint64_t take_ns, leave_ns, late_ns; /* its next things; NS_NEVER: not */
	uint64_t pause_ns;		     /* before it takes a piece; NS_NEVER: it never does */
	struct happening_event timer;
};

void asks_start(struct world *world);
void asks_done(struct world *world);
void asks_happen(struct world *world, struct sim_asker *asker);
void asks_hear(struct world *world, uint64_t link, const struct msg *msg);
void asks_asked(struct world *world, struct host *host, const struct msg *msg);
/* What the last step asked this host to do. */
void asks_obey(struct world *world, struct host *host);
void asks_answer(struct world *world, struct host *host);
void asks_process_ended(struct world *world, struct host *host);
struct sim_question *asks_question(const struct world *world, struct bytes args);

/* checks.c */
void checks_choose(struct world *world);
uint64_t checks_before_join_ns(struct world *world);
void checks_configure(struct world *world, const struct host *host, struct agent_config *config);
void checks_begin(struct world *world, struct host *host);
void checks_end(struct world *world, struct host *host);
void checks_measure(struct world *world, struct host *host, const struct msg_pair *pair);
void checks_measured(struct world *world, struct host *host, const struct happening_event *event);
void checks_settled(struct world *world, struct host *host);
void checks_noted(struct world *world, struct host *host, const struct note *note);

/* check_asks.c */
void check_asks_taken(struct world *world, struct host *host, const struct msg_ask *ask);
void check_asks_sent(struct world *world, const struct host *host, const struct msg *msg);
void check_asks_reply(struct world *world, struct sim_question *question,
		      const struct msg_reply *reply);
void check_asks_missed(struct world *world, struct sim_question *question,
		       const struct msg_missed *missed);
void check_asks_ended(struct world *world, struct sim_question *question,
		      const struct msg_ended *ended);
void check_asks_messages(struct world *world, const struct host *host,
			 const struct sim_answer *answer);
void check_asks_step(struct world *world, struct host *host);

/* notices.c */
void notices_start(struct world *world);
void notices_done(struct world *world);
void notices_workers_start(struct world *world, struct host *host);
void notices_workers_gone(struct world *world, struct host *host);
void notices_step(struct world *world, struct host *host);
void notices_show(struct world *world, struct host *host, const struct stop_plan *plan);
void notices_give(struct world *world, struct host *host);
/* Workers of its last round, which is over, left as agreed, and the state of all is safe. */
bool notices_left(const struct world *world, const struct host *host);

/* gaits.c */
void gaits_choose(struct world *world);
void gaits_start(struct world *world);
void gaits_done(struct world *world);
void gaits_begin(struct world *world, uint32_t index);
void gaits_stride(struct world *world, uint32_t index);
void gaits_workers_start(struct world *world, struct host *host, const struct msg_formed *formed);
void gaits_workers_gone(struct world *world, struct host *host);
void gaits_look(struct world *world, struct host *host);
void gaits_sent(struct world *world, const struct host *host, const struct msg *msg);
void gaits_noted(struct world *world, struct host *host, const struct note *note);
void gaits_late(struct world *world, const struct host *host, const struct straggler_news *news);

/* hushes.c */
void hushes_choose(struct world *world);
void hushes_start(struct world *world);
void hushes_workers_start(struct world *world, struct host *host);
void hushes_workers_gone(struct world *world, struct host *host);
void hushes_happen(struct world *world, struct host *host);
void hushes_look(struct world *world, struct host *host);

/* check.c */
void check_acts(struct world *world, struct host *host, size_t rank, uint64_t step);
void check_broken(struct world *world, const char *fmt, ...) PRINTF_LIKE(2, 3);
void check_formed(struct world *world, struct host *host);
void check_charge(struct world *world, struct host *host, struct ballot ballot, uint32_t count);
void check_round_ended(struct world *world, struct host *host, bool by_failure);
void check_ruling(struct world *world, const struct host *host);
void check_closes(struct world *world, const struct host *host);
void check_group_start(struct world *world, struct host *host, const struct msg_formed *formed);
void check_group_end(struct world *world, struct host *host);
void check_step(struct world *world);
void check_done(struct world *world);
void check_exit(struct world *world, const struct host *host);
void check_outcome(struct world *world, struct host *host, const struct outcome *outcome);
struct round_record *check_round(struct world *world, struct ballot ballot);

#endif
