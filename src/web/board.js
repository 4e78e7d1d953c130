/* What is known of the job: proto/dash/board.h says how it is told. */

const STATES = ['unknown', 'starting', 'running', 'ended', 'failed', 'stopped'];
const UNKNOWN = 0, STARTING = 1, RUNNING = 2, ENDED = 3, FAILED = 4, STOPPED = 5;
const COLUMNS = ['host', 'state', 'pid', 'cpu', 'mem', 'step', 'silent'];
const SAMPLES_MAX = 512;

const board = {
	n: 0,
	base: -1,
	now: 0,
	c: Object.fromEntries(COLUMNS.map(name => [name, new Int32Array(0)])),
	hosts: [],
	job: {},
	attempts: [],
	about: {},
	progress: {},
	samples: [], /* [ms, running, cpu %, MiB, step, steps/s * 1000] */
	changed: null, /* ranks, or null: all */

	take(told) {
		if (told.all)
			this.reset(told.n);
		this.now = told.now || this.now;
		const before = this.base;
		if ('base' in told)
			this.base = told.base;
		this.changed = told.all ? null : this.takeColumns(told.c || {});
		if (told.all)
			this.takeColumns(told.c || {});
		else if (before !== this.base && this.changed)
			this.changed = this.changed.length ? this.changed : [];
		for (const [i, host] of told.hosts || [])
			this.hosts[i] = host;
		for (const part of ['job', 'attempts', 'about', 'progress'])
			if (part in told)
				this[part] = told[part];
		if (told.samples)
			for (let i = 0; i + 6 <= told.samples.length; i += 6)
				this.samples.push(told.samples.slice(i, i + 6));
		if (told.sample)
			this.samples.push(told.sample);
		if (this.samples.length > SAMPLES_MAX)
			this.samples = this.samples.filter((_, i) => i % 2 === 0);
	},

	reset(n) {
		this.n = n;
		this.hosts = [];
		this.samples = [];
		for (const name of COLUMNS)
			this.c[name] = new Int32Array(n);
	},

	/* The ranks that changed; null: very many. */
	takeColumns(columns) {
		let changed = [];
		for (const [key, values] of Object.entries(columns)) {
			const pairs = key.startsWith('~');
			const column = this.c[pairs ? key.slice(1) : key];
			if (!column)
				continue;
			if (!pairs) {
				column.set(values.slice(0, this.n));
				changed = null;
				continue;
			}
			for (let i = 0, at = 0; i + 2 <= values.length; i += 2, at++) {
				at += values[i];
				column[at] = values[i + 1];
				if (changed)
					changed.push(at);
			}
		}
		return changed;
	},

	step(rank) {
		return this.c.step[rank] < 0 ? -1 : this.base + this.c.step[rank];
	},

	/* Steps behind the first, or seconds of silence: what makes a rank late. */
	behind(rank) {
		return this.c.step[rank] < 0 ? 0 : (this.progress.most ?? this.base) - this.step(rank);
	},

	count(state) {
		let count = 0;
		for (let i = 0; i < this.n; i++)
			count += this.c.state[i] === state;
		return count;
	},

	/* ['3 ended', '1 failed'] */
	states() {
		return STATES.map((name, i) => [this.count(i), name]).filter(([count]) => count).map(([count, name]) => `${showNumber(count)} ${name}`);
	},

	/* What a saved page keeps: the same as the server would tell. */
	all() {
		return {
			all: true, now: this.now, n: this.n, base: this.base,
			c: Object.fromEntries(COLUMNS.map(name => [name, Array.from(this.c[name])])),
			hosts: this.hosts.map((host, i) => [i, host]),
			job: this.job, attempts: this.attempts, about: this.about, progress: this.progress,
			samples: this.samples.flat(),
		};
	},

	isOver() {
		return 'exit_code' in this.job;
	},
};
