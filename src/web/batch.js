/* The page of a batch: proto/dash/roster.h says what it is told and what it can ask for. */

const STATES = ['queued', 'running', 'waiting', 'ok', 'failed', 'skipped'];
const BADGES = {queued: '', running: 'running', waiting: 'stopping', ok: 'done', failed: 'failed', skipped: 'unknown'};
const ROWS = 100, FAILURES = 100, SAMPLES_MAX = 512, ASK_PAUSE_MS = 1000;

const batch = {
	n: 0,
	now: 0,
	sum: {},
	times: new Map(), /* bin -> runs */
	failures: [],
	samples: [], /* [ms, orders per second] */

	take(told) {
		if (told.all) {
			this.n = told.n;
			this.times = new Map();
			this.failures = [];
		}
		this.now = told.now || this.now;
		this.sum = told.sum || this.sum;
		const times = told.times || [];
		for (let i = 0; i + 2 <= times.length; i += 2)
			this.times.set(times[i], times[i + 1]);
		this.failures = this.failures.concat(told.failures || []).slice(-FAILURES);
		this.samples.push([this.now, (this.sum.rate_m || 0) / 1000]);
		if (this.samples.length > SAMPLES_MAX)
			this.samples = this.samples.filter((_, i) => i % 2 === 0);
	},

	isOver() {
		return 'exit_code' in this.sum;
	},

	done() {
		return (this.sum.ok || 0) + (this.sum.failed || 0) + (this.sum.skipped || 0);
	},
};

function showTime(s) {
	if (s < 0.001)
		return `${(s * 1e6).toFixed(0)} µs`;
	if (s < 1)
		return `${(s * 1000).toPrecision(3)} ms`;
	return s < 60 ? `${s.toPrecision(3)} s` : showSpan(s);
}

/* ---- the top ---- */

function cards() {
	const {sum} = batch, list = [];
	const add = (name, value, note) => list.push([name, value, note]);
	add('Done', `${showNumber(batch.done())} of ${showNumber(batch.n)}`, sum.before ? `${showNumber(sum.before)} were done before` : null);
	add('Failed', showNumber(sum.failed || 0), sum.skipped ? `${showNumber(sum.skipped)} skipped` : null);
	if (!batch.isOver())
		add('Running', showNumber(sum.running || 0), sum.jobs ? `${showNumber(sum.jobs)} at a time` : null);
	if (sum.hosts)
		add('Hosts', showNumber(sum.hosts), null);
	add('Orders per second', ((sum.rate_m || 0) / 1000).toPrecision(3), 'in the last minute');
	if (sum.left_s !== undefined)
		add('Left', showSpan(sum.left_s), `until ${showClock(batch.now + sum.left_s * 1000)}`);
	const ran = ((sum.ended_ms || batch.now) - sum.started_ms) / 1000;
	add(batch.isOver() ? 'Ran' : 'Runs', showSpan(ran), sum.started_ms ? `since ${showClock(sum.started_ms)}` : null);
	if (batch.isOver())
		add('Exit code', String(sum.exit_code), null);
	return list;
}

function drawTop() {
	const state = batch.sum.state || '';
	$('state').textContent = state;
	$('state').className = `badge badge-${state}`;
	document.title = batch.n ? `${batch.done()} of ${batch.n} ${state}` : 'muster batch';
	$('progress').max = Math.max(1, batch.n);
	$('progress').value = batch.done();
	$('cards').replaceChildren(...cards().map(([name, value, note]) =>
		el('div', {}, el('dt', {}, name), el('dd', {}, value), note ? el('dd', {className: 'note'}, note) : null)));
}

/* ---- how long runs take ---- */

/* Where a bin begins, in seconds: 4 bins to the double. */
const binStart = bin => 2 ** Math.floor(bin / 4) * (1 + bin % 4 / 4) / 1e9;

class Histogram {
	constructor(title) {
		this.title = title;
		this.value = el('b', {});
		this.canvas = el('canvas', {role: 'img'});
		this.element = el('figure', {className: 'chart', id: 'times'}, el('figcaption', {}, title, ' ', this.value), this.canvas);
	}

	/* The bin where that share of all runs has ended. */
	static at(bins, total, share) {
		let sum = 0;
		for (const [bin, runs] of bins) {
			sum += runs;
			if (sum >= total * share)
				return bin;
		}
		return 0;
	}

	draw(times) {
		const bins = [...times].sort((a, b) => a[0] - b[0]), total = bins.reduce((sum, one) => sum + one[1], 0);
		const words = total ? `${showNumber(total)} runs, median about ${showTime(binStart(Histogram.at(bins, total, 0.5) + 0.5))}, ` +
			`19 of 20 below ${showTime(binStart(Histogram.at(bins, total, 0.95) + 1))}` : 'no run has ended yet';
		this.value.textContent = words;
		this.canvas.setAttribute('aria-label', `${this.title}: ${words}`);
		const width = Math.max(120, this.element.clientWidth - 2), height = 120, bottom = 18, top = 6;
		const context = contextOf(this.canvas, width, height);
		if (!total)
			return;
		const first = bins[0][0] - 1, count = Math.max(12, bins[bins.length - 1][0] + 2 - first);
		const most = Math.max(...bins.map(one => one[1])), step = width / count;
		context.fillStyle = cssColour('--accent');
		for (const [bin, runs] of bins) {
			const size = Math.max(1, (height - top - bottom) * runs / most);
			context.fillRect((bin - first) * step, height - bottom - size, Math.max(1, step - 1), size);
		}
		context.font = '11px sans-serif';
		context.fillStyle = cssColour('--quiet');
		context.textBaseline = 'middle';
		for (let i = 0, free = 0; i < count; i++) {
			const x = i * step, label = showTime(binStart(first + i));
			if (x < free || x + context.measureText(label).width > width)
				continue;
			context.fillText(label, x, height - 8);
			context.fillRect(x, height - bottom, 1, 4);
			free = x + 80;
		}
	}
}

const rateChart = new Chart('Orders per second', value => value < 10 ? value.toPrecision(2) : value.toFixed(0));
const timesChart = new Histogram('Wall times:');

function drawCharts() {
	timesChart.draw(batch.times);
	rateChart.draw(batch.samples);
}

/* ---- failures ---- */

let drawnFailures = null;

function drawFailures() {
	if (drawnFailures === batch.failures || !batch.failures.length)
		return;
	drawnFailures = batch.failures;
	const all = batch.sum.failures || batch.failures.length;
	$('failures-part').hidden = false;
	$('failures-count').textContent = all > batch.failures.length ? `The last ${batch.failures.length} of ${showNumber(all)}, newest first.` : 'Newest first.';
	$('failures').replaceChildren(...batch.failures.toReversed().map(failure => el('article', {},
		el('h3', {}, `${failure.order + 1} · ${plain(failure.id)}: ${plain(failure.how)}${failure.host ? ` on ${plain(failure.host)}` : ''}`),
		el('code', {}, plain(failure.command)),
		failure.tail ? el('pre', {className: 'tail'}, plain(failure.tail)) : null)));
}

/* ---- orders ---- */

const orders = {
	rows: [],
	count: 0,
	from: 0,
	asking: false,
	stale: false,
	late: false, /* the last changes are not known */
	timer: null,

	filter() {
		const query = {from: this.from, state: $('filter-state').value};
		if ($('filter-text').value)
			query.text = $('filter-text').value;
		if ($('filter-label').value)
			query.label = $('filter-label').value;
		return query;
	},

	/* The orders that are shown may be others now: asks, but not too often. */
	ask(pause = ASK_PAUSE_MS) {
		if (this.asking) {
			this.stale = true;
			return;
		}
		if (!this.timer)
			this.timer = setTimeout(() => this.fetch(), pause);
	},

	async fetch() {
		this.timer = null;
		this.asking = true;
		this.stale = false;
		try {
			const answer = await fetch('api/orders', {method: 'POST', headers: server.headers(), body: JSON.stringify(this.filter())});
			const text = await answer.text();
			if (!answer.ok)
				throw new Error(text.trim());
			const told = JSON.parse(text);
			this.rows = told.rows;
			this.count = told.count;
			this.from = told.from;
			notice('');
			this.draw();
		} catch (error) {
			notice(batch.isOver() ? 'The batch has ended: its list can no longer be searched.' : plain(error.message));
		}
		this.asking = false;
		if (this.stale)
			this.ask();
	},

	/* Changes of orders: of those that are shown, at once. */
	take(told) {
		this.late = batch.isOver() && told.many;
		if (!batch.isOver() && (told.all || told.many || told.rows && $('filter-state').value))
			this.ask(told.all ? 0 : ASK_PAUSE_MS);
		const shown = new Map(this.rows.map(row => [row[0], row]));
		for (const row of told.rows || [])
			if (shown.has(row[0]))
				shown.get(row[0]).splice(0, row.length, ...row);
		this.draw();
	},

	draw() {
		const last = this.from + this.rows.length, hosts = this.rows.some(row => row[5]);
		$('orders-count').textContent = this.rows.length ? `${showNumber(this.from + 1)} to ${showNumber(last)} of ${showNumber(this.count)}${this.late ? ', shortly before the end' : ''}`
			: batch.n ? 'No order passes these filters.' : '';
		$('before').disabled = this.from === 0;
		$('after').disabled = last >= this.count;
		document.querySelector('th.of-host').hidden = !hosts;
		$('orders').replaceChildren(...this.rows.map(([index, state, attempts, runs, us, host, started, id, command, labels]) => el('tr', {},
			el('td', {}, showNumber(index + 1)),
			el('td', {}, el('span', {className: `badge badge-${BADGES[STATES[state]]}`}, STATES[state])),
			el('td', {}, STATES[state] === 'running' ? `since ${showClock(started)}` : us < 0 ? '–' : showTime(us / 1e6)),
			el('td', {}, showNumber(runs)),
			el('td', {}, showNumber(attempts)),
			hosts ? el('td', {}, plain(host)) : null,
			el('td', {}, plain(id)),
			el('td', {className: 'command'}, plain(command)),
			el('td', {}, plain(labels)))));
	},

	go(from) {
		this.from = Math.max(0, from);
		this.ask(0);
	},
};

/* ---- the server ---- */

function takeTold(_, told) {
	batch.take(told);
	drawTop();
	drawCharts();
	drawFailures();
	orders.take(told);
	if (batch.isOver())
		setSource('ended', 'the batch has ended; this is its last state');
	else
		setSource('live', 'live');
}

/* ---- start ---- */

initTheme();
$('charts').append(rateChart.element, timesChart.element);
$('filter-state').append(el('option', {value: ''}, 'all states'), ...STATES.map(state => el('option', {value: state}, state)));
for (const id of ['filter-state', 'filter-text', 'filter-label'])
	$(id).addEventListener('input', () => {
		orders.from = 0;
		orders.ask(200);
	});
$('before').addEventListener('click', () => orders.go(orders.from - ROWS));
$('after').addEventListener('click', () => orders.go(orders.from + ROWS));
document.addEventListener('looks', drawCharts);
addEventListener('resize', drawCharts);
document.addEventListener('keydown', event => {
	if (event.key !== '/' || event.target.matches('input, select') || event.ctrlKey || event.metaKey || event.altKey)
		return;
	$('filter-text').focus();
	event.preventDefault();
});
server.takeToken();
setSource('none', 'connecting');
stayConnected(batch, takeTold);
