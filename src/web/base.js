'use strict';
/* What all views use. Texts from outside become text nodes, never markup. */

const $ = id => document.getElementById(id);

/* el('td', {className: 'num'}, 'text', otherElement) */
function el(tag, properties, ...children) {
	const element = document.createElement(tag);
	for (const [name, value] of Object.entries(properties || {})) {
		if (name.startsWith('on'))
			element.addEventListener(name.slice(2), value);
		else if (name in element)
			element[name] = value;
		else
			element.setAttribute(name, value);
	}
	for (const child of children)
		if (child !== null && child !== undefined)
			element.append(child);
	return element;
}

/* Texts of programs may have escape sequences for terminals and other control characters. */
function plain(text) {
	return String(text)
		.replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-_])/g, '')
		.replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, '\ufffd');
}

const pad = (number, width = 2) => String(number).padStart(width, '0');

function showClock(ms) {
	const date = new Date(ms);
	return `${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}`;
}

function showDate(ms) {
	const date = new Date(ms);
	return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())} ${showClock(ms)}`;
}

function showSpan(s) {
	if (!(s >= 0))
		return '–';
	s = Math.round(s);
	if (s < 60)
		return `${s} s`;
	if (s < 3600)
		return `${Math.floor(s / 60)} min ${s % 60} s`;
	if (s < 86400)
		return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
	return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

/* Of a time that may be short: "0.25 s". */
const showShort = s => s < 10 ? `${Number(s.toPrecision(2))} s` : showSpan(s);

function showMemory(mib) {
	return mib < 1024 ? `${mib} MiB` : mib < 1048576 ? `${(mib / 1024).toFixed(1)} GiB` : `${(mib / 1048576).toFixed(2)} TiB`;
}

const showNumber = number => number.toLocaleString('en-US');

/* "0-3,8" of sorted numbers. */
function showRanks(ranks) {
	const parts = [];
	for (let i = 0; i < ranks.length;) {
		let j = i;
		while (j + 1 < ranks.length && ranks[j + 1] === ranks[j] + 1)
			j++;
		parts.push(i === j ? `${ranks[i]}` : `${ranks[i]}-${ranks[j]}`);
		i = j + 1;
	}
	return parts.join(',');
}

/* The same back, as a function that says whether a rank is meant; null: all are. */
function parseRanks(text) {
	const ranges = [];
	for (const part of text.split(',')) {
		const match = /^\s*(\d+)\s*(?:-\s*(\d+)\s*)?$/.exec(part);
		if (match)
			ranges.push([Number(match[1]), Number(match[2] || match[1])]);
	}
	return ranges.length ? ranges : null;
}

function countRanks(text) {
	let count = 0;
	for (const [from, to] of parseRanks(text) || [])
		count += to - from + 1;
	return count;
}

/* ---- looks ---- */

const themes = ['auto', 'dark', 'light'];

function setTheme(theme) {
	if (theme === 'auto')
		delete document.documentElement.dataset.theme;
	else
		document.documentElement.dataset.theme = theme;
	$('theme').title = `Colours: ${theme}`;
	try {
		localStorage.setItem('muster-theme', theme);
	} catch {
		/* a saved page may have no storage */
	}
	document.dispatchEvent(new Event('looks'));
}

function initTheme() {
	let theme = 'auto';
	try {
		theme = localStorage.getItem('muster-theme') || theme;
	} catch {
		/* as above */
	}
	setTheme(themes.includes(theme) ? theme : 'auto');
	$('theme').addEventListener('click', () => {
		const now = document.documentElement.dataset.theme || 'auto';
		setTheme(themes[(themes.indexOf(now) + 1) % themes.length]);
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => document.dispatchEvent(new Event('looks')));
}

const cssColour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* ---- saying and asking ---- */

function notice(text) {
	$('notice').textContent = text;
	$('notice').hidden = !text;
}

function confirmFirst(title, text, yes, action) {
	$('confirm-title').textContent = title;
	$('confirm-text').textContent = text;
	$('confirm-yes').textContent = yes;
	const dialog = $('confirm');
	$('confirm-no').onclick = () => dialog.close();
	$('confirm-yes').onclick = () => {
		dialog.close();
		action();
	};
	dialog.showModal();
	$('confirm-no').focus();
}

function download(name, type, text) {
	const link = el('a', {href: URL.createObjectURL(new Blob([text], {type})), download: name});
	document.body.append(link);
	link.click();
	link.remove();
	setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

/* ---- the server ---- */

const server = {
	token: '',

	/* The token is in the part of the address that browsers keep to themselves. */
	takeToken() {
		const match = /[#&]token=([0-9a-f]+)/.exec(location.hash);
		try {
			if (match)
				sessionStorage.setItem('muster-token', match[1]);
			this.token = match ? match[1] : sessionStorage.getItem('muster-token') || '';
		} catch {
			this.token = match ? match[1] : '';
		}
		if (match)
			history.replaceState(null, '', location.pathname);
	},

	headers() {
		return {Authorization: `Bearer ${this.token}`};
	},

	/* Server-sent events, read by fetch(): EventSource cannot send the token. Ends with the stream. */
	async listen(path, onEvent, signal) {
		const answer = await fetch(path, {headers: this.headers(), signal, cache: 'no-store'});
		if (!answer.ok)
			throw Object.assign(new Error((await answer.text()).trim()), {code: answer.status});
		const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = '';
		for (;;) {
			const {done, value} = await reader.read();
			if (done)
				return;
			const parts = (rest + value).split('\n\n');
			rest = parts.pop();
			for (const part of parts) {
				const match = /^event: (\w+)\ndata: (.*)$/s.exec(part);
				if (match)
					onEvent(match[1], JSON.parse(match[2]));
			}
		}
	},

	async post(path, wish) {
		const answer = await fetch(path, {method: 'POST', headers: this.headers(), body: JSON.stringify(wish)});
		if (!answer.ok)
			throw new Error((await answer.text()).trim());
	},
};

/* What the page shows: live, ended (what is left of a live one) or saved. */
let source = 'none';

function setSource(kind, text) {
	source = kind;
	document.body.dataset.source = kind;
	$('live').textContent = text;
}

/* Passes on what the server tells of `what`, a board or a batch, and connects again until that is over. */
async function stayConnected(what, onEvent) {
	for (let wait = 1000;; wait = Math.min(wait * 2, 15000)) {
		try {
			await server.listen('api/stream', (event, told) => {
				wait = 1000;
				onEvent(event, told);
			});
		} catch (error) {
			if (error.code === 401 || error.code === 503)
				notice(plain(error.message));
			if (error.code === 401)
				return;
		}
		if (what.isOver())
			return;
		setSource('ended', what.n ? 'no connection: this was the last state' : 'no connection');
		await new Promise(resolve => setTimeout(resolve, wait));
	}
}
