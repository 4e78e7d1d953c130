/* One log of all ranks. Only the lines in sight are in the document. */

const LOG_MAX = 20000;
const LINE_HEIGHT = 18;

const log = {
	lines: [], /* [ms, "0-3,8", text] */
	shown: [], /* of those that pass the filter */
	lost: 0,
	ranges: null,
	needle: null, /* text => whether it is meant; null: all are */
	follow: true,
	picked: null,

	make() {
		this.search = el('input', {
			type: 'search', id: 'log-search', placeholder: 'Search: text or /expression/', 'aria-label': 'Search',
			oninput: () => this.filter(),
		});
		this.ranks = el('input', {
			type: 'search', id: 'log-ranks', placeholder: 'Ranks: 0-3,17', 'aria-label': 'Ranks', size: 14,
			oninput: () => this.filter(),
		});
		this.box = el('input', {type: 'checkbox', checked: true, onchange: () => this.setFollow(this.box.checked)});
		this.count = el('span', {className: 'quiet', id: 'log-count', role: 'status'});
		this.spacer = el('div', {className: 'log-spacer'});
		this.window = el('div', {
			id: 'log', className: 'log', tabIndex: 0, role: 'log', 'aria-label': 'Log', onscroll: () => this.onScroll(),
		}, this.spacer);
		this.whole = el('pre', {id: 'log-whole', className: 'picked', hidden: true});
		new ResizeObserver(() => this.draw()).observe(this.window);
		return el('div', {},
			el('div', {className: 'bar'}, this.search, this.ranks, el('label', {}, this.box, ' follow'), this.count,
				el('button', {type: 'button', onclick: () => this.save()}, 'Save log')),
			this.window, this.whole);
	},

	take(told) {
		this.lost += told.lost || 0;
		for (const line of told.lines || []) {
			line[2] = plain(line[2]);
			this.lines.push(line);
			if (this.passes(line))
				this.shown.push(line);
		}
		if (this.lines.length > LOG_MAX * 1.1) {
			this.lines = this.lines.slice(-LOG_MAX);
			this.shown = this.lines.filter(line => this.passes(line));
		}
		this.draw();
	},

	clear() {
		this.lines = [];
		this.shown = [];
		this.lost = 0;
	},

	passes(line) {
		if (this.needle && !this.needle(line[2]))
			return false;
		return !this.ranges || (parseRanks(line[1]) || []).some(([from, to]) => this.ranges.some(([a, b]) => from <= b && a <= to));
	},

	filter() {
		const text = this.search.value, match = /^\/(.+)\/$/.exec(text);
		this.search.setCustomValidity('');
		if (match) {
			try {
				const expression = new RegExp(match[1], 'i');
				this.needle = line => expression.test(line);
			} catch (error) {
				this.search.setCustomValidity(error.message);
			}
		} else {
			const wanted = text.toLowerCase();
			this.needle = text ? line => line.toLowerCase().includes(wanted) : null;
		}
		this.ranges = parseRanks(this.ranks.value);
		this.shown = this.lines.filter(line => this.passes(line));
		this.draw();
	},

	setFollow(follow) {
		this.follow = this.box.checked = follow;
		this.draw();
	},

	onScroll() {
		const atEnd = this.window.scrollTop + this.window.clientHeight >= this.spacer.offsetHeight - LINE_HEIGHT;
		if (this.follow !== atEnd && !this.drawing)
			this.follow = this.box.checked = atEnd;
		this.draw();
	},

	draw() {
		if (!this.window || !this.window.offsetParent)
			return;
		this.drawing = true;
		this.spacer.style.height = `${this.shown.length * LINE_HEIGHT}px`;
		if (this.follow)
			this.window.scrollTop = this.window.scrollHeight;
		this.drawing = false;
		const from = Math.max(0, Math.floor(this.window.scrollTop / LINE_HEIGHT) - 5);
		const to = Math.min(this.shown.length, from + Math.ceil(this.window.clientHeight / LINE_HEIGHT) + 10);
		const rows = [];
		for (let i = from; i < to; i++) {
			const row = this.row(this.shown[i]);
			row.style.top = `${i * LINE_HEIGHT}px`;
			rows.push(row);
		}
		this.spacer.replaceChildren(...rows);
		this.count.textContent = (this.shown.length === this.lines.length ? `${showNumber(this.lines.length)} lines`
			: `${showNumber(this.shown.length)} of ${showNumber(this.lines.length)} lines`) +
			(this.lost ? `, ${showNumber(this.lost)} left out` : '');
	},

	row(line) {
		const many = countRanks(line[1]);
		return el('div', {className: 'line', onclick: () => this.pick(line)},
			el('time', {}, showClock(line[0])),
			el('span', {className: 'ranks', title: line[1]}, many > 1 ? `${line[1]} ×${showNumber(many)}` : line[1]),
			el('span', {className: 'text'}, line[2]));
	},

	pick(line) {
		this.whole.textContent = `${showDate(line[0])}  rank ${line[1]}\n${line[2]}`;
		this.whole.hidden = false;
	},

	save() {
		download('muster.log', 'text/plain', this.shown.map(line => `${new Date(line[0]).toISOString()} [${line[1]}] ${line[2]}\n`).join(''));
	},
};
