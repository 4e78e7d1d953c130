/* All ranks as small squares on a canvas. Each state has a shape of its own besides its colour. */

const RAMP = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [254, 232, 56]]; /* cividis */
const SIGNS = ['?', '…', '', '✓', '×', '–'];

function rampColour(share) {
	const at = Math.max(0, Math.min(share, 1)) * (RAMP.length - 1), i = Math.min(Math.floor(at), RAMP.length - 2);
	const mix = RAMP[i].map((from, k) => Math.round(from + (RAMP[i + 1][k] - from) * (at - i)));
	return `rgb(${mix.join(',')})`;
}

const RAMP_COLOURS = Array.from({length: 64}, (_, i) => rampColour(i / 63));

const MODES = {
	state: {title: 'state'},
	late: {
		title: 'lateness',
		share: rank => Math.max(
			board.behind(rank) / Math.max(2, Math.min(20, board.base / 10)),
			board.c.silent[rank] ? Math.log2(board.c.silent[rank]) / 10 : 0),
		ends: ['with the first', 'far behind, or silent for long'],
	},
	cpu: {title: 'CPU', share: rank => board.c.cpu[rank] / 100, ends: ['idle', 'one CPU or more']},
	mem: {
		title: 'memory',
		share: rank => board.c.mem[rank] / grid.mostMemory,
		ends: ['0', () => showMemory(grid.mostMemory)],
	},
};

const grid = {
	mode: 'state',
	selected: -1,
	size: 16, /* of a square, with the space beside it */
	perRow: 1,
	mostMemory: 1,
	drawn: 0, /* how many times it was drawn whole: for tests */
	queued: false,
	whole: true,
	dirty: [],

	/* The canvas and what is around it. */
	make() {
		this.canvas = el('canvas', {
			id: 'grid', tabIndex: 0, role: 'img',
			onclick: event => this.select(this.at(event), true),
			onmousemove: event => this.say(this.at(event)),
			onmouseleave: () => this.say(this.selected),
			onkeydown: event => this.key(event),
		});
		this.line = el('p', {id: 'grid-line', className: 'quiet', role: 'status'});
		this.legend = el('p', {id: 'grid-legend', className: 'legend'});
		const choice = el('div', {className: 'choice', role: 'radiogroup', 'aria-label': 'Colour by'}, 'Colour by ');
		for (const [name, mode] of Object.entries(MODES))
			choice.append(el('label', {}, el('input', {
				type: 'radio', name: 'grid-mode', value: name, checked: name === this.mode,
				onchange: () => this.setMode(name),
			}), ` ${mode.title}`));
		new ResizeObserver(() => this.redraw()).observe(this.canvas.ownerDocument.documentElement);
		document.addEventListener('looks', () => this.redraw());
		return el('div', {}, choice, this.legend, this.canvas, this.line);
	},

	setMode(mode) {
		this.mode = mode;
		for (const input of document.getElementsByName('grid-mode'))
			input.checked = input.value === mode;
		this.redraw();
	},

	/* ---- drawing ---- */

	redraw() {
		this.whole = true;
		this.queue();
	},

	update() {
		if (!board.changed || board.changed.length * 4 > board.n || this.mode === 'late' || this.mode === 'mem')
			this.whole = true;
		else
			this.dirty.push(...board.changed);
		this.queue();
	},

	queue() {
		if (this.queued || !this.canvas || !this.canvas.isConnected || !this.canvas.offsetParent)
			return;
		this.queued = true;
		requestAnimationFrame(() => {
			this.queued = false;
			this.draw();
		});
	},

	layOut() {
		const width = Math.max(100, this.canvas.parentElement.clientWidth), scale = devicePixelRatio || 1;
		this.size = board.n <= 256 ? 24 : board.n <= 2048 ? 16 : board.n <= 8192 ? 10 : board.n <= 32768 ? 6 : 4;
		this.perRow = Math.max(1, Math.floor(width / this.size));
		if (this.perRow > 8) /* hosts often have a multiple of 8 workers */
			this.perRow -= this.perRow % 8;
		const rows = Math.max(1, Math.ceil(board.n / this.perRow)), height = rows * this.size;
		this.canvas.style.width = `${width}px`;
		this.canvas.style.height = `${height}px`;
		this.canvas.width = Math.round(width * scale);
		this.canvas.height = Math.round(height * scale);
		this.context = this.canvas.getContext('2d');
		this.context.setTransform(scale, 0, 0, scale, 0, 0);
		this.colours = STATES.map(state => cssColour(`--rank-${state}`));
		this.ink = cssColour('--ink');
		this.paper = cssColour('--paper');
		this.context.font = `bold ${Math.floor(this.size * 0.7)}px sans-serif`;
		this.context.textAlign = 'center';
		this.context.textBaseline = 'middle';
	},

	draw() {
		if (!this.canvas.offsetParent)
			return;
		if (this.whole || !this.context) {
			this.mostMemory = 1;
			for (let i = 0; i < board.n; i++)
				this.mostMemory = Math.max(this.mostMemory, board.c.mem[i]);
			this.layOut();
			for (let i = 0; i < board.n; i++)
				this.drawRank(i);
			this.drawn++;
			this.drawLegend();
		} else {
			for (const rank of new Set(this.dirty))
				this.drawRank(rank);
		}
		this.whole = false;
		this.dirty = [];
		this.mark();
		this.canvas.setAttribute('aria-label', `${showNumber(board.n)} ranks; ${summaryOfStates()}. Arrow keys move, Enter shows a rank.`);
	},

	drawRank(rank) {
		const context = this.context, size = this.size, gap = size > 8 ? 2 : 1;
		const x = rank % this.perRow * size, y = Math.floor(rank / this.perRow) * size, side = size - gap;
		const state = board.c.state[rank], mode = MODES[this.mode];
		context.clearRect(x, y, size, size);
		if (mode.share && state === RUNNING) {
			context.fillStyle = RAMP_COLOURS[Math.round(Math.max(0, Math.min(mode.share(rank), 1)) * 63)];
			context.fillRect(x, y, side, side);
			return;
		}
		const colour = this.colours[state];
		context.fillStyle = context.strokeStyle = colour;
		if (state === RUNNING || state === FAILED) {
			context.fillRect(x, y, side, side);
		} else if (state === ENDED) {
			const inset = Math.max(1, Math.floor(side / 4));
			context.fillRect(x + inset, y + inset, Math.max(1, side - 2 * inset), Math.max(1, side - 2 * inset));
		} else {
			context.lineWidth = 1;
			context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
		}
		if (size >= 10 && SIGNS[state] && state !== ENDED) {
			context.fillStyle = state === FAILED ? this.paper : colour;
			context.fillText(SIGNS[state], x + side / 2, y + side / 2 + 1);
		}
	},

	mark() {
		if (this.selected < 0 || this.selected >= board.n)
			return;
		const x = this.selected % this.perRow * this.size, y = Math.floor(this.selected / this.perRow) * this.size;
		this.context.strokeStyle = this.ink;
		this.context.lineWidth = 2;
		this.context.strokeRect(x + 1, y + 1, this.size - 2, this.size - 2);
	},

	drawLegend() {
		const mode = MODES[this.mode];
		this.legend.replaceChildren();
		const states = [];
		for (let i = 0; i < STATES.length; i++) {
			const count = board.count(i);
			if (count && !(mode.share && i === RUNNING))
				states.push(el('span', {className: `key key-${STATES[i]}`}, `${showNumber(count)} ${STATES[i]}`));
		}
		if (mode.share) {
			const bar = el('canvas', {width: 128, height: 12, className: 'ramp'}), context = bar.getContext('2d');
			for (let i = 0; i < 64; i++) {
				context.fillStyle = RAMP_COLOURS[i];
				context.fillRect(i * 2, 0, 2, 12);
			}
			const [from, to] = mode.ends.map(end => typeof end === 'function' ? end() : end);
			this.legend.append(`${from} `, bar, ` ${to} `);
		}
		this.legend.append(...states);
	},

	/* ---- one rank ---- */

	at(event) {
		const box = this.canvas.getBoundingClientRect();
		const column = Math.floor((event.clientX - box.left) / this.size), row = Math.floor((event.clientY - box.top) / this.size);
		const rank = row * this.perRow + column;
		return column < 0 || column >= this.perRow || rank >= board.n ? -1 : rank;
	},

	describe(rank) {
		if (rank < 0 || rank >= board.n)
			return '';
		const host = board.hosts[board.c.host[rank]], step = board.step(rank), silent = board.c.silent[rank];
		return `rank ${rank} on ${host ? plain(host.name) : '?'}: ${STATES[board.c.state[rank]]}, pid ${board.c.pid[rank]}, ` +
			`CPU ${board.c.cpu[rank]} %, ${showMemory(board.c.mem[rank])}` +
			(step >= 0 ? `, step ${showNumber(step)}${board.behind(rank) > 0 ? ` (${showNumber(board.behind(rank))} behind)` : ''}` : '') +
			(silent ? `, silent for ${showSpan(silent)} or more` : '');
	},

	say(rank) {
		this.line.textContent = this.describe(rank) || 'Point at a square, or select one with the arrow keys.';
	},

	select(rank, open) {
		if (rank < 0)
			return;
		const before = this.selected;
		this.selected = rank;
		if (before >= 0 && before < board.n && this.context)
			this.drawRank(before);
		if (this.context)
			this.mark();
		this.say(rank);
		if (open)
			openRank(rank);
	},

	key(event) {
		const moves = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.perRow, ArrowDown: this.perRow};
		if (event.key in moves)
			this.select(Math.max(0, Math.min(board.n - 1, Math.max(this.selected, 0) + (this.selected < 0 ? 0 : moves[event.key]))));
		else if (event.key === 'Enter' && this.selected >= 0)
			openRank(this.selected);
		else
			return;
		event.preventDefault();
	},
};

function summaryOfStates() {
	return STATES.map((state, i) => [board.count(i), state]).filter(([count]) => count)
		.map(([count, state]) => `${showNumber(count)} ${state}`).join(', ') || 'none yet';
}
