/* The views of a job. Each has a title and make(), which gives its elements once, and draw(), which is
 * called when it is in sight and something has changed. */

function table(id, titles) {
	const body = el('tbody', {});
	const element = el('div', {className: 'scroll'},
		el('table', {id}, el('thead', {}, el('tr', {}, ...titles.map(title => el('th', {scope: 'col'}, title)))), body));
	return {element, body};
}

const row = (...cells) => el('tr', {}, ...cells.map(cell =>
	cell instanceof Node ? el('td', {}, cell) : el('td', typeof cell === 'number' ? {className: 'num'} : {},
		typeof cell === 'number' ? showNumber(cell) : cell ?? '')));

const stateBadge = state => el('span', {className: `badge badge-${state}`}, state);

/* ---- ranks ---- */

const ATTENTION_MAX = 50;

/* The ranks to look at first: failed, unknown, silent, behind. */
function troubledRanks() {
	const found = [];
	for (let i = 0; i < board.n; i++) {
		const state = board.c.state[i], late = state === RUNNING && (board.behind(i) > 1 || board.c.silent[i] >= 16);
		if (state === FAILED || state === UNKNOWN || late)
			found.push([state === FAILED ? 0 : state === UNKNOWN ? 1 : 2, -board.behind(i), -board.c.silent[i], i]);
	}
	found.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2] || a[3] - b[3]);
	return found.map(item => item[3]);
}

const ranksView = {
	id: 'ranks', title: 'Ranks',
	shown: -1, /* the rank whose details are open */
	make() {
		this.trouble = table('attention', ['rank', 'host', 'state', 'step', 'behind', 'silent', 'CPU', 'memory']);
		this.more = el('p', {className: 'quiet', id: 'attention-more'});
		this.detail = el('section', {id: 'rank', hidden: true, 'aria-live': 'polite'});
		return [grid.make(), this.detail, el('h2', {}, 'Needs attention'), this.more, this.trouble.element];
	},
	draw() {
		grid.update();
		grid.say(grid.selected);
		if (this.shown >= 0 && $('rank-line'))
			$('rank-line').textContent = grid.describe(this.shown);
		const ranks = troubledRanks();
		this.more.textContent = !board.n ? 'No workers are known yet.' : ranks.length === 0 ? 'No rank has failed, is silent or behind.'
			: ranks.length > ATTENTION_MAX ? `${showNumber(ranks.length)} ranks; the first ${ATTENTION_MAX}:` : '';
		this.trouble.element.hidden = ranks.length === 0;
		this.trouble.body.replaceChildren(...ranks.slice(0, ATTENTION_MAX).map(rank => {
			const host = board.hosts[board.c.host[rank]], step = board.step(rank);
			return row(el('button', {type: 'button', className: 'link', onclick: () => openRank(rank)}, `${rank}`), host ? plain(host.name) : '?',
				stateBadge(STATES[board.c.state[rank]]), step < 0 ? '' : step, board.behind(rank) || '',
				board.c.silent[rank] ? `≥ ${showSpan(board.c.silent[rank])}` : '', `${board.c.cpu[rank]} %`, showMemory(board.c.mem[rank]));
		}));
	},
};

function openRank(rank) {
	showView('ranks');
	grid.select(rank);
	ranksView.shown = rank;
	ranksView.detail.hidden = false;
	ranksView.detail.replaceChildren(el('h2', {}, `Rank ${rank}`), el('p', {id: 'rank-line'}, grid.describe(rank)));
	if (rank in saved.workers)
		showWorker(saved.workers[rank]);
	if (isLive())
		wish({do: 'workers', ranks: [rank]});
}

const QUIET_MEMBERS = new Set(['rank', 'local_rank', 'pid', 'state', 'environment', 'command', 'program', 'last_line']);

function showWorker(worker) {
	const state = worker.state || {}, parts = [];
	saved.workers[state.rank] = worker;
	if (state.rank !== ranksView.shown)
		return;
	if (state.last_line)
		parts.push(el('h3', {}, 'Last line'), el('pre', {id: 'rank-last'}, plain(state.last_line)));
	if (state.command)
		parts.push(el('h3', {}, 'Command'), el('pre', {id: 'rank-command'}, state.command.map(quote).join(' ')));
	parts.push(el('h3', {}, 'State'), el('dl', {className: 'facts'}, ...Object.entries(state).filter(([name]) => !QUIET_MEMBERS.has(name))
		.flatMap(([name, value]) => [el('dt', {}, name.replaceAll('_', ' ')), el('dd', {}, plain(typeof value === 'object' ? JSON.stringify(value) : value))])));
	if (state.environment)
		parts.push(el('details', {}, el('summary', {}, `Environment (${state.environment.length})`),
			el('pre', {id: 'rank-environment'}, state.environment.map(plain).join('\n'))));
	ranksView.detail.replaceChildren(el('h2', {}, `Rank ${state.rank} on ${plain(worker.host)}`), el('p', {id: 'rank-line'}, grid.describe(state.rank)), ...parts);
}

/* As a shell would need it. */
function quote(word) {
	return /^[\w\-+=./:,@%]+$/.test(word) ? word : `'${plain(word).replaceAll("'", "'\\''")}'`;
}

/* ---- log ---- */

const logView = {
	id: 'log-view', title: 'Log',
	make: () => [log.make()],
	draw: () => log.draw(),
};

/* ---- hosts ---- */

/* When the job is over, a host no longer says what it does; `known`: how many of its ranks have ended as one knows. */
function hostState(host, known) {
	if (board.isOver() && host.rank >= 0 && host.state !== 'unknown')
		return known ? 'ended' : 'unknown';
	return host.why ? 'unknown' : plain(host.rank < 0 && host.node ? host.node.state : host.state);
}

const hostsView = {
	id: 'hosts-view', title: 'Hosts',
	make() {
		this.table = table('hosts', ['host', 'node', 'state', 'workers', 'ranks', 'running', 'CPUs used', 'memory', 'pid', '']);
		return [this.table.element];
	},
	draw() {
		const sums = board.hosts.map(() => ({ranks: [], running: 0, cpu: 0, mem: 0}));
		for (let i = 0; i < board.n; i++) {
			const sum = sums[board.c.host[i]];
			if (!sum || board.c.state[i] === UNKNOWN)
				continue;
			sum.ranks.push(i);
			sum.running += board.c.state[i] === RUNNING;
			sum.cpu += board.c.cpu[i];
			sum.mem += board.c.mem[i];
		}
		this.table.body.replaceChildren(...board.hosts.map((host, i) => row(
			plain(host.name), host.rank < 0 ? 'spare' : host.rank,
			stateBadge(hostState(host, sums[i].ranks.length)),
			host.workers ?? '', showRanks(sums[i].ranks), sums[i].running, (sums[i].cpu / 100).toFixed(1), showMemory(sums[i].mem),
			host.pid === undefined ? '' : String(host.pid), host.why ? plain(host.why) : '')));
	},
};

/* ---- timeline ---- */

const END_WORDS = {running: 'running', done: 'done', failed: 'failed', stopped: 'stopped', regroup: 'nodes came or went', restarted: 'restarted by a user'};

const timelineView = {
	id: 'timeline-view', title: 'Timeline',
	make() {
		this.bars = el('div', {id: 'bars', className: 'bars', role: 'img', 'aria-label': 'Rounds over time; the table below has the same'});
		this.table = table('attempts', ['#', 'began', 'took', 'ranks', 'steps', 'ended', 'cause', 'lost time']);
		this.tails = el('div', {});
		return [this.bars, this.table.element, this.tails];
	},
	draw() {
		const attempts = board.attempts, end = board.job.ended_ms || board.now;
		const from = board.job.started_ms || (attempts[0] || {}).started_ms || 0, span = Math.max(1, end - from);
		this.bars.replaceChildren(...attempts.map((attempt, i) => {
			const bar = el('span', {className: `bar-${attempt.end}`, title: `attempt ${i}: ${END_WORDS[attempt.end] || attempt.end}`}, `${i}`);
			bar.style.left = `${(attempt.started_ms - from) / span * 100}%`;
			bar.style.width = `${Math.max(0.3, ((attempt.ended_ms || end) - attempt.started_ms) / span * 100)}%`;
			return bar;
		}));
		this.table.body.replaceChildren(...attempts.map((attempt, i) => {
			const cause = attempt.cause;
			return row(i, showDate(attempt.started_ms), showSpan(((attempt.ended_ms || board.now) - attempt.started_ms) / 1000), attempt.world_size,
				'step' in attempt ? `${showNumber(attempt.first_step)} – ${showNumber(attempt.step)}` : '',
				stateBadge('left_step' in attempt ? `left after step ${showNumber(attempt.left_step)}` : END_WORDS[attempt.end] || plain(attempt.end)),
				cause ? `rank ${cause.rank} on ${plain(cause.host)}: ${plain(cause.end)} (${plain(cause.reason)})` : '',
				'lost_s' in attempt ? showSpan(attempt.lost_s) : '');
		}));
		const tails = attempts.map((attempt, i) => [attempt, i]).filter(([attempt]) => attempt.collectives || (attempt.cause && attempt.cause.tail));
		const key = JSON.stringify(tails);
		if (key === this.key)
			return;
		this.key = key;
		this.tails.replaceChildren(...tails.map(([attempt, i]) => el('details', {open: i === tails[tails.length - 1][1]},
			el('summary', {}, attempt.cause ? `Attempt ${i}: last lines of rank ${attempt.cause.rank}` : `Attempt ${i}: collectives`),
			attempt.collectives ? el('pre', {}, plain(attempt.collectives)) : null,
			attempt.cause && attempt.cause.tail ? el('pre', {className: 'tail'}, plain(attempt.cause.tail)) : null)));
	},
};

/* ---- charts ---- */

const chartsView = {
	id: 'charts-view', title: 'Charts',
	make() {
		this.charts = [
			[new Chart('Steps per second', value => value.toFixed(value < 10 ? 2 : 0)), sample => sample[5] / 1000],
			[new Chart('Step of the last rank', value => showNumber(Math.round(value))), sample => Math.max(0, sample[4])],
			[new Chart('Ranks running', value => showNumber(Math.round(value))), sample => sample[1]],
			[new Chart('CPUs used', value => value.toFixed(value < 1 ? 2 : value < 10 ? 1 : 0)), sample => sample[2] / 100],
			[new Chart('Memory', value => showMemory(Math.round(value))), sample => sample[3]],
		];
		document.addEventListener('looks', () => this.draw());
		new ResizeObserver(() => this.draw()).observe(document.documentElement);
		return [el('p', {className: 'quiet'}, 'Since the page was first opened; nothing is measured while nobody looks.'),
			el('div', {className: 'charts'}, ...this.charts.map(([chart]) => chart.element))];
	},
	draw() {
		for (const [chart, value] of this.charts)
			chart.draw(board.samples.map(sample => [sample[0], value(sample)]));
	},
};

/* ---- stacks and collectives ---- */

const stacksView = {
	id: 'stacks-view', title: 'Stacks',
	make() {
		this.button = el('button', {type: 'button', id: 'read-stacks', className: 'live-only', onclick: () => wish({do: 'stacks'})}, 'Read the stacks of all ranks');
		this.verdict = el('button', {type: 'button', id: 'read-collectives', className: 'live-only', onclick: () => wish({do: 'collectives'})}, 'Which collective do they wait in?');
		this.save = el('button', {
			type: 'button', hidden: true, onclick: () => download('stacks.folded', 'text/plain', saved.stacks.folded),
		}, 'Save for a flame graph');
		this.text = el('pre', {id: 'stack-text', hidden: true});
		this.collectives = el('pre', {id: 'collectives', hidden: true});
		this.hang = el('pre', {id: 'last-hang', hidden: true});
		return [el('div', {className: 'bar'}, this.button, this.verdict, this.save), this.hang, this.collectives, this.text];
	},
	draw() {
		const show = (element, text) => {
			element.hidden = !text;
			element.textContent = plain(text || '');
		};
		const stacks = saved.stacks || {}, collectives = saved.collectives || {};
		show(this.hang, board.job.last_hang && `The last hang:\n${board.job.last_hang}`);
		show(this.text, stacks.text);
		show(this.collectives, saved.collectives && (collectives.text || 'No collective is known.') + failures(collectives));
		this.save.hidden = !stacks.folded;
	},
};

/* Hosts that did not answer, a line each. */
function failures(answer) {
	return (answer.failed || []).map(([host, why]) => `\n${host}: ${why}`).join('');
}

/* ---- command ---- */

const commandView = {
	id: 'command-view', title: 'Command',
	make() {
		this.box = el('div', {});
		return [this.box];
	},
	draw() {
		const about = board.about, key = JSON.stringify([about, board.job.log_dir]);
		if (key === this.key)
			return;
		this.key = key;
		const facts = [['program', about.program], ['directory', about.directory], ['role', about.role], ['workers per host', about.nproc],
			['log directory', board.job.log_dir], ['muster', board.job.version]].filter(([, value]) => value !== undefined);
		this.box.replaceChildren(el('h2', {}, 'Command'), el('pre', {id: 'command'}, (about.command || []).map(quote).join(' ')),
			el('dl', {className: 'facts'}, ...facts.flatMap(([name, value]) => [el('dt', {}, name), el('dd', {}, plain(value))])),
			about.binding ? el('div', {}, el('h2', {}, 'Binding'), el('pre', {id: 'binding'}, plain(about.binding))) : '',
			el('p', {className: 'quiet'}, 'Select a rank in the view Ranks for its own command, environment and CPUs.'));
	},
};
