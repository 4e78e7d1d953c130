// The page of a comparison. Every order is an <article class=card> with its name and compact data; a card is
// filled in when it comes into view, so that a page of 10,000 orders opens at once.
//
// data-r: verdict a b ratio low high q least most left-out blocks, "-" for what is not known
// data-a, data-b: the runs in the order in which they were made, two digits to the base 36 each between
// `least` and `most`; "~" before a suspect run that was left out
// data-c, data-d: the commands of A and B; data-d only if it differs
// data-l: its labels, places in `labels`; data-w: why it is undecided
const VERDICTS = ['undecided', 'same', 'faster', 'slower'], MARKS = ['?', '=', '▼', '▲'];
const UNITS = { ns: [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']], kib: [[1 << 20, 'GiB'], [1 << 10, 'MiB'], [1, 'KiB']] };
const $ = (selector, from = document) => [...from.querySelectorAll(selector)];

function make(tag, name, text) {
	const node = document.createElement(tag);
	if (name) node.className = name;
	if (text !== undefined) node.textContent = text;
	return node;
}

function draw(tag, attributes, ...children) {
	const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
	for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
	node.append(...children);
	return node;
}

function format(value, unit) {
	if (isNaN(value)) return '-';
	if (!UNITS[unit]) return Math.round(value).toLocaleString('en');
	const [scale, name] = UNITS[unit].find(([least]) => value >= least) || UNITS[unit].at(-1);
	const shown = value / scale;
	return `${shown.toFixed(shown >= 999.95 ? 0 : shown >= 99.995 ? 1 : shown >= 9.9995 ? 2 : 3)} ${name}`;
}

const percent = ratio => `${ratio >= 1 ? '+' : '−'}${Math.abs(100 * (ratio - 1)).toFixed(2)} %`;

// ---- data ----

function readRuns(text, least, most) {
	const runs = [];
	for (let i = 0; i < text.length; i += 2) {
		const suspect = text[i] == '~';
		i += suspect;
		runs.push({ value: least + (most - least) * parseInt(text.substr(i, 2), 36) / 1295, suspect });
	}
	return runs;
}

function readCard(card, place, unit) {
	const data = card.dataset;
	const [verdict, a, b, ratio, low, high, q, least, most, left, blocks] = data.r.split(' ').map(Number);
	return { card, place, unit, name: card.textContent, verdict, a, b, ratio, low, high, q, least, most, left, blocks,
		labels: data.l ? data.l.split(' ').map(i => labels[i]) : [] };
}

const labelOf = (row, name) => (row.labels.find(label => label.startsWith(name + '=')) || '').slice(name.length + 1);
const shown = label => label.replace(/^\d+=/, '');

// ---- cards ----

function strip(row, runs) {
	const x = value => 12 + (row.most > row.least ? (value - row.least) / (row.most - row.least) : 0.5) * 456;
	const svg = draw('svg', { viewBox: '0 0 480 84', 'stroke-width': 1.5, 'aria-hidden': true });
	['a', 'b'].forEach((side, lane) => {
		const y = 22 + 40 * lane, counted = runs[side].filter(run => !run.suspect).map(run => run.value).sort((p, q) => p - q);
		const at = part => counted[Math.min(counted.length - 1, Math.floor(part * counted.length))];
		if (counted.length) {
			svg.append(draw('line', { class: 's' + side, x1: x(counted[0]), x2: x(counted.at(-1)), y1: y, y2: y }));
			svg.append(draw('rect', { class: 'f' + side, opacity: .22, x: x(at(.25)), y: y - 14, height: 28,
				width: Math.max(1, x(at(.75)) - x(at(.25))) }));
			svg.append(draw('line', { class: 's' + side, 'stroke-width': 4, x1: x(row[side]), x2: x(row[side]), y1: y - 16,
				y2: y + 16 }));
		}
		runs[side].forEach((run, i) => svg.append(draw('circle', { class: (run.suspect ? 'o' : 'f') + side, opacity: .65,
			cx: x(run.value), cy: y + ((i * 5) % 7 - 3) * 3, r: 3.2 })));
	});
	return svg;
}

// The runs one after the other: a slope is drift.
function history(row, runs) {
	const y = value => 56 - (row.most > row.least ? (value - row.least) / (row.most - row.least) : 0.5) * 48;
	const svg = draw('svg', { viewBox: '0 0 480 64', 'aria-hidden': true });
	svg.append(draw('line', { class: 'grid', x1: 0, x2: 480, y1: 60, y2: 60 }));
	for (const side of ['a', 'b']) {
		const step = 456 / Math.max(1, runs[side].length - 1), x = i => 12 + i * step;
		svg.append(draw('polyline', { class: 's' + side, fill: 'none', 'stroke-width': 1.2, opacity: .5,
			points: runs[side].map((run, i) => `${x(i).toFixed(1)},${y(run.value).toFixed(1)}`).join(' ') }));
		runs[side].forEach((run, i) => svg.append(draw('circle', { class: (run.suspect ? 'o' : 'f') + side, cx: x(i),
			cy: y(run.value), r: 2.4 })));
	}
	return svg;
}

function axis(left, right) {
	const node = make('div', 'axis');
	node.append(make('span', '', left), make('span', '', right));
	return node;
}

function number(side, text, soft) {
	const node = make('span');
	if (side) node.append(make('span', 'key ' + side));
	node.append(text + ' ', make('span', 'soft', soft));
	return node;
}

function fill(row) {
	const { card, unit } = row, data = card.dataset, verdict = VERDICTS[row.verdict];
	const runs = { a: readRuns(data.a, row.least, row.most), b: readRuns(data.b, row.least, row.most) };
	const top = make('div', 'top'), numbers = make('div', 'nums');
	top.append(make('h3', '', row.name), make('span', 'verdict ' + verdict, `${MARKS[row.verdict]} ${verdict}`));
	for (const side of ['a', 'b'])
		numbers.append(number(side, format(row[side], unit), 'n ' + runs[side].filter(run => !run.suspect).length));
	if (!isNaN(row.ratio))
		numbers.append(number('', percent(row.ratio), isFinite(row.high) ? `${percent(row.low)} to ${percent(row.high)}` : ''));
	if (!isNaN(row.q)) numbers.append(make('span', 'soft', `q ${row.q.toPrecision(2)}`));
	if (row.blocks) numbers.append(make('span', 'soft', `${row.blocks} blocks`));
	card.replaceChildren(top, numbers);
	if (row.left) card.append(make('p', 'soft', `${row.left} suspect run${row.left > 1 ? 's' : ''} left out (hollow)`));
	if (data.w) card.append(make('p', 'soft', data.w));
	card.append(strip(row, runs), axis(format(row.least, unit), format(row.most, unit)), history(row, runs),
		axis('first run', 'last run'));
	for (const [side, command] of [['a', data.c], ['b', data.d]])
		if (command) {
			const code = make('code', 'command', command);
			if (data.d) code.prepend(make('span', 'key ' + side));
			card.append(code);
		}
}

// ---- all orders of a metric at a glance ----

function overview(section) {
	const { rows, canvas, noise } = section, style = getComputedStyle(document.documentElement);
	const colour = name => style.getPropertyValue('--' + name), ratios = rows.filter(row => !isNaN(row.ratio));
	const width = canvas.clientWidth, height = canvas.clientHeight, scale = devicePixelRatio || 1, left = 56;
	canvas.width = width * scale;
	canvas.height = height * scale;
	const pen = canvas.getContext('2d');
	pen.scale(scale, scale);
	const effect = Math.max(0, ...ratios.map(row => Math.abs(Math.log(row.ratio))));
	const ends = ratios.filter(row => isFinite(row.high) && row.low > 0)
		.map(row => Math.max(Math.abs(Math.log(row.low)), Math.abs(Math.log(row.high))));
	const bar = Math.log1p(noise);
	const reach = 1.1 * Math.max(Math.min(Math.max(0, ...ends), 2.5 * Math.max(effect, bar)), effect, 1.5 * bar);
	const y = ratio => height / 2 * (1 - Math.max(-1, Math.min(1, Math.log(ratio) / reach)));
	section.x = i => left + (i + .5) * (width - left - 4) / ratios.length;
	section.at = x => ratios[Math.floor((x - left) / (width - left - 4) * ratios.length)];
	pen.fillStyle = colour('line');
	pen.globalAlpha = .45;
	pen.fillRect(left, y(1 + noise), width - left, y(1 / (1 + noise)) - y(1 + noise));
	pen.globalAlpha = 1;
	pen.font = '12px system-ui,sans-serif';
	for (const part of [-.8, -.4, 0, .4, .8]) {
		const at = y(Math.exp(part * reach));
		pen.fillStyle = colour('soft');
		pen.fillText(`${part > 0 ? '+' : ''}${(100 * Math.expm1(part * reach)).toFixed(1)} %`, 0, at + 4);
		pen.fillStyle = colour('line');
		pen.fillRect(left, at, width - left, 1);
	}
	const radius = Math.max(1.2, Math.min(6, (width - left) / ratios.length / 2.5));
	ratios.forEach((row, i) => {
		const x = section.x(i);
		pen.fillStyle = pen.strokeStyle = colour(VERDICTS[row.verdict]);
		if (isFinite(row.high)) {
			pen.lineWidth = Math.max(.4, Math.min(2.5, radius / 2));
			pen.beginPath();
			pen.moveTo(x, y(row.low));
			pen.lineTo(x, y(row.high));
			pen.stroke();
		}
		pen.beginPath();
		pen.arc(x, y(row.ratio), radius, 0, 7);
		pen.fill();
	});
}

// ---- order, groups, filters ----

const SORTS = {
	ratio: (p, q) => isNaN(p.ratio) - isNaN(q.ratio) || q.ratio - p.ratio,
	listed: (p, q) => p.place - q.place,
	name: (p, q) => p.name.localeCompare(q.name, 'en', { numeric: true }),
	verdict: (p, q) => q.verdict - p.verdict || q.ratio - p.ratio,
	suspects: (p, q) => q.left - p.left,
};

function arrange(section) {
	const by = section.group.value, places = new Map();
	const keys = row => by == 'none' ? [] : by == 'labels' ? row.labels.slice(0, -1).map(shown)
		: [`${isNaN(by) ? by + ' = ' : ''}${labelOf(row, by) || 'none'}`];
	const listed = [...section.all].sort(SORTS.listed);
	for (const row of listed) {
		row.groups = keys(row);
		row.path = row.groups.map((_, i) => {
			const key = row.groups.slice(0, i + 1).join('\n');
			if (!places.has(key)) places.set(key, places.size);
			return places.get(key);
		});
	}
	const order = SORTS[section.sort.value];
	section.all.sort((p, q) => {
		for (let i = 0; i < Math.max(p.path.length, q.path.length); i++)
			if (p.path[i] != q.path[i]) return (p.path[i] ?? -1) - (q.path[i] ?? -1);
		return order(p, q) || p.place - q.place;
	});
	show(section);
}

function show(section) {
	const words = section.search.value.toLowerCase();
	const wanted = section.tiles.filter(tile => tile.getAttribute('aria-pressed') == 'true').map(tile => tile.dataset.verdict);
	const matches = row => (!wanted.length || wanted.includes(VERDICTS[row.verdict])) && (!words ||
		[row.name, ...row.labels, row.card.dataset.c, row.card.dataset.d].join(' ').toLowerCase().includes(words));
	const nodes = [];
	let before = '';
	section.rows = section.all.filter(matches);
	for (const row of section.rows) {
		const group = row.groups.join(' › ');
		if (group != before) nodes.push(make('h4', 'group', group));
		before = group;
		nodes.push(row.card);
	}
	section.cards.replaceChildren(...nodes);
	section.count.textContent = `${section.rows.length} of ${section.all.length} order${section.all.length == 1 ? '' : 's'}`;
	overview(section);
}

function choice(parent, label, values, chosen) {
	const box = make('label', 'soft', label + ' '), select = make('select');
	for (const [value, text] of values) {
		const option = make('option', '', text);
		option.value = value;
		select.append(option);
	}
	select.value = chosen;
	box.append(select);
	parent.append(box);
	return select;
}

function open(node) {
	const section = { tiles: $('.tiles button', node), cards: $('.cards', node)[0], noise: +node.dataset.noise };
	section.all = $('.card', node).map((card, place) => readCard(card, place, node.dataset.unit));
	const names = [...new Set(section.all.flatMap(row => row.labels.map(label => label.split('=')[0])))];
	const bar = $('.controls', node)[0];
	section.search = make('input');
	section.search.type = 'search';
	section.search.placeholder = 'find an order, a label, a command';
	section.search.setAttribute('aria-label', section.search.placeholder);
	section.count = make('span', 'soft');
	section.group = choice(bar, 'group by', [...(names.length ? [['labels', 'all labels']] : []), ['none', 'nothing'],
		...names.map(name => [name, isNaN(name) ? name : `label ${name}`])], node.dataset.group || (names.length ? 'labels' : 'none'));
	section.sort = choice(bar, 'sort by', Object.keys(SORTS).map(name => [name, name]), 'ratio');
	bar.prepend(section.search);
	bar.append(section.count);
	section.canvas = make('canvas', 'overview');
	section.canvas.setAttribute('role', 'img');
	section.canvas.setAttribute('aria-label', 'the ratio of every order with its interval');
	$('.panel', node)[0].prepend(axis('above: more in B', 'band: no change'), section.canvas);
	section.canvas.onmousemove = event => {
		const row = section.at(event.offsetX);
		section.canvas.title = row ? `${row.name}: ${percent(row.ratio)}, ${VERDICTS[row.verdict]}` : '';
	};
	section.canvas.onclick = event => {
		const row = section.at(event.offsetX);
		if (!row) return;
		row.card.scrollIntoView({ block: 'center' });
		row.card.classList.add('here');
		setTimeout(() => row.card.classList.remove('here'), 1500);
	};
	for (const tile of section.tiles)
		tile.onclick = () => {
			tile.setAttribute('aria-pressed', tile.getAttribute('aria-pressed') != 'true');
			show(section);
		};
	section.search.oninput = () => show(section);
	section.group.onchange = section.sort.onchange = () => arrange(section);
	const byCard = new Map(section.all.map(row => [row.card, row]));
	const seen = new IntersectionObserver(entries => entries.filter(entry => entry.isIntersecting).forEach(entry => {
		seen.unobserve(entry.target);
		fill(byCard.get(entry.target));
	}), { rootMargin: '600px' });
	section.all.forEach(row => seen.observe(row.card));
	arrange(section);
	addEventListener('resize', () => overview(section));
	matchMedia('(prefers-color-scheme:dark)').addEventListener('change', () => overview(section));
}

$('section[data-unit]').forEach(open);
