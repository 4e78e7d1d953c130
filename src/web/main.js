/* The page: cards at the top, views under tabs, and the server behind them. */

const views = [ranksView, logView, hostsView, timelineView, chartsView, stacksView, commandView];

/* What a saved page has besides the board and the log. */
const saved = {stacks: null, collectives: null, workers: {}};

let current = null;
let single = null; /* this page as one file without data, for saving */

const isLive = () => source === 'live';

/* ---- cards ---- */

function cards() {
	const {job, progress} = board, list = [];
	const ran = ((job.ended_ms || board.now) - job.started_ms) / 1000;
	const add = (name, value, note) => list.push([name, value, note]);
	if (board.isOver())
		add('Ranks', showNumber(board.n), board.states().join(', '));
	else
		add('Ranks', board.n ? `${showNumber(board.count(RUNNING))} of ${showNumber(board.n)}` : '–', 'running');
	add('Nodes', job.nodes ? showNumber(job.nodes) : '–', job.min_nodes === job.max_nodes ? null : `${job.min_nodes} to ${job.max_nodes} wanted`);
	if (progress.step !== undefined) {
		add('Step', showNumber(progress.step), progress.total ? `of ${showNumber(progress.total)}`
			: progress.most > progress.step ? `the first is at ${showNumber(progress.most)}` : null);
		add('Steps per second', progress.rate_m && !standsStill() ? (progress.rate_m / 1000).toFixed(progress.rate_m < 10000 ? 2 : 0) : '–',
			progress.behind === undefined ? null : `rank ${progress.behind} is last`);
	}
	if (progress.left_s !== undefined && !board.isOver())
		add('Left', showSpan(progress.left_s), `until ${showClock(board.now + progress.left_s * 1000)}`);
	if (job.goodput && job.goodput.total_s)
		add('Goodput', `${Math.round(job.goodput.steps_s / job.goodput.total_s * 100)} %`, 'in new steps');
	add('Restarts', job.restarts ?? '–', job.restarts_by_progress ? 'as many as bring progress'
		: job.max_restarts === undefined ? null : `${Math.max(0, job.max_restarts - job.restarts)} left`);
	add('Round', job.round ?? '–', null);
	add(board.isOver() ? 'Ran' : 'Runs', showSpan(ran), job.started_ms ? `since ${showClock(job.started_ms)}` : null);
	if (board.isOver())
		add('Exit code', String(job.exit_code), job.exit_code === 0 ? 'done' : job.state === 'left' ? 'start it again to go on' : null);
	return list;
}

/* No rank that runs has told a step for far longer than usual. */
const standsStill = () => !board.isOver() && board.job.state === 'running' && board.progress.still_s > 0;

function drawStill() {
	const {still_s, usual_ms} = board.progress, id = quote(plain(board.job.run_id || 'JOB'));
	return [el('h2', {}, `No step for ${showSpan(still_s)} (usually ${showShort(usual_ms / 1000)})`),
		el('p', {}, 'A long pause or a hang: the view Stacks, ', el('code', {}, `muster stacks ${id}`), ' and, with the flight recorder, ',
			el('code', {}, `muster collectives ${id}`), ' say where the ranks are and who is missing.')];
}

/* What happened, of a job that is over: as report.json and the console have it. */
function drawEnd() {
	const {story, verdict} = board.job, facts = [], fact = (name, value) => value && facts.push(el('dt', {}, name), el('dd', {}, value));
	if (!story)
		return [];
	const cause = story.first_cause;
	if (cause) {
		fact('first cause', cause.rank === undefined ? `the host ${plain(cause.host)}${cause.ended ? `, ${showDate(Date.parse(cause.ended))}` : ''}` : el('span', {}, el('button', {type: 'button', className: 'link', onclick: () => openRank(cause.rank)}, `rank ${cause.rank}`),
			` on ${plain(cause.host)}, pid ${cause.pid}${cause.ended ? `, ${showDate(Date.parse(cause.ended))}` : ''}`));
		fact('the others', (story.others || []).map(others => `${showNumber(others.count)} ${plain(others.how)} (rank${others.count > 1 ? 's' : ''} ${plain(others.ranks)})`).join('; '));
		fact('steps', story.most_step === undefined ? '' : `${story.step < story.most_step ? `${showNumber(story.step)} to ` : ''}${showNumber(story.most_step)}` +
			(story.saved_step === undefined ? '' : `, saved up to ${showNumber(story.saved_step)}`));
	}
	if (verdict && verdict.class !== 'unknown')
		fact('verdict', `${verdict.sure === 'known' ? '' : verdict.sure === 'likely' ? 'probably ' : 'perhaps '}${plain(verdict.class)}` +
			` (${plain(verdict.from)}${verdict.symptom ? `: ${plain(verdict.symptom)}` : ''})${verdict.do === 'none' ? '' : `; ${plain(verdict.do)}`}`);
	fact('try', story.try && plain(story.try));
	return [el('h2', {}, plain(story.headline)), facts.length ? el('dl', {className: 'facts'}, ...facts) : null,
		story.words ? el('p', {className: 'quiet'}, plain(story.words_from || '')) : null,
		story.words ? el('pre', {id: 'story-words'}, plain(story.words)) : null].filter(part => part);
}

/* Drawn when it changes: a reader may have marked or scrolled a part of it. */
function drawStory() {
	const over = board.isOver(), key = over ? JSON.stringify([board.job.story, board.job.verdict]) : standsStill() && JSON.stringify(board.progress);
	if (key === drawStory.key)
		return;
	drawStory.key = key;
	const parts = over ? drawEnd() : key ? drawStill() : [];
	$('story').hidden = !parts.length;
	$('story').className = over ? board.job.exit_code ? 'failed' : 'done' : 'still';
	$('story').replaceChildren(...parts);
	if (over && $('story-words'))
		$('story-words').scrollTop = $('story-words').scrollHeight;
}

function drawTop() {
	const job = board.job, state = standsStill() ? 'no step' : job.state || '';
	$('title').textContent = plain(job.run_id || 'muster');
	$('state').textContent = state;
	$('state').className = `badge badge-${standsStill() ? 'unknown' : state}`;
	document.title = `${plain(job.run_id || 'muster')} ${state}`;
	drawStory();
	$('cards').replaceChildren(...cards().map(([name, value, note]) =>
		el('div', {}, el('dt', {}, name), el('dd', {}, String(value)), note ? el('dd', {className: 'note'}, note) : null)));
}

/* ---- views ---- */

function makeViews() {
	for (const [i, view] of views.entries()) {
		view.tab = el('button', {
			type: 'button', role: 'tab', id: `tab-${view.id}`, tabIndex: -1, title: `Key ${i + 1}`,
			onclick: () => showView(view.id),
		}, view.title);
		view.tab.setAttribute('aria-controls', view.id);
		view.panel = el('section', {id: view.id, role: 'tabpanel', hidden: true}, ...view.make());
		view.panel.setAttribute('aria-labelledby', view.tab.id);
		$('views').append(view.tab);
		$('main').append(view.panel);
	}
	$('views').addEventListener('keydown', event => {
		const at = views.indexOf(current), to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: views.length - 1}[event.key];
		if (to === undefined)
			return;
		showView(views[(to + views.length) % views.length].id);
		current.tab.focus();
		event.preventDefault();
	});
	document.addEventListener('keydown', event => {
		if (event.target.matches('input, textarea, select') || event.ctrlKey || event.metaKey || event.altKey || $('confirm').open)
			return;
		const view = views[Number(event.key) - 1];
		if (view)
			showView(view.id);
		else if (event.key === '/') {
			showView('log-view');
			log.search.focus();
			event.preventDefault();
		}
	});
}

function showView(id) {
	const view = views.find(one => one.id === id);
	if (view === current)
		return;
	current = view;
	for (const one of views) {
		one.panel.hidden = one !== view;
		one.tab.setAttribute('aria-selected', one === view);
		one.tab.tabIndex = one === view ? 0 : -1;
	}
	if (isLive())
		listenToLog(view === logView);
	board.changed = null;
	view.draw();
}

function draw() {
	drawTop();
	current.draw();
}

/* ---- the server ---- */

let logListener = null;

function listenToLog(wanted) {
	if (!wanted && logListener) {
		logListener.abort();
		logListener = null;
	}
	if (!wanted || logListener)
		return;
	const listener = logListener = new AbortController();
	log.clear();
	server.listen('api/log', (_, told) => log.take(told), listener.signal).catch(() => {}).finally(() => {
		if (logListener === listener)
			logListener = null;
	});
}

function takeAnswer(answer) {
	const failed = (answer.failed || []).length;
	if (answer.to === 'stacks')
		saved.stacks = answer;
	else if (answer.to === 'collectives')
		saved.collectives = answer;
	else if (answer.to === 'workers')
		(answer.workers || []).forEach(showWorker);
	notice(failed && answer.to !== 'collectives' ? `${failed} of ${answer.hosts} hosts did not answer.${plain(failures(answer))}` : '');
	for (const button of document.querySelectorAll('.live-only'))
		button.disabled = false;
	current.draw();
}

async function wish(what) {
	const busy = what.do === 'workers' ? [] : document.querySelectorAll('.live-only');
	for (const button of busy)
		button.disabled = true;
	try {
		await server.post('api/do', what);
	} catch (error) {
		notice(plain(error.message));
		for (const button of busy)
			button.disabled = false;
	}
}

function takeTold(event, told) {
	if (event === 'answer') {
		takeAnswer(told);
		return;
	}
	board.take(told);
	if (!isLive()) {
		setSource('live', 'live');
		listenToLog(current === logView);
	}
	draw();
	if (board.isOver())
		setSource('ended', 'the job has ended; this is its last state');
}

/* ---- saving ---- */

function savePage() {
	const data = JSON.stringify({
		kind: 'job', saved_ms: Date.now(), board: board.all(), log: {lines: log.lines, lost: log.lost}, more: saved,
	});
	const [head, tail] = single.split('>null<\/script>');
	download(`muster-${String(board.job.run_id || 'job').replace(/[^\w.-]/g, '_')}.html`, 'text/html',
		`${head}>${data.replaceAll('<', '\\u003c')}<\/script>${tail}`);
}

function openSaved(data) {
	board.take(data.board);
	log.take(data.log || {});
	Object.assign(saved, data.more);
	setSource('saved', data.saved_ms ? `saved at ${showDate(data.saved_ms)}` : 'from the log directory');
	draw();
}

/* ---- start ---- */

initTheme();
makeViews();
showView('ranks');
drawTop();
$('save').addEventListener('click', savePage);
$('stop').addEventListener('click', () => confirmFirst('Stop the job?',
	'All workers on all hosts get SIGTERM, and the job ends. This cannot be undone.', 'Stop the job', () => wish({do: 'stop'})));
$('restart').addEventListener('click', () => confirmFirst('Restart the workers?',
	'All workers end and start again, from their last saved state if they save one.', 'Restart the workers', () => wish({do: 'restart'})));
$('checkpoint').addEventListener('click', () => confirmFirst('Save the state of all workers?',
	'All workers save after the same step and go on, if they ask for it (muster checkpoint).', 'Save', () => wish({do: 'checkpoint'})));

const data = $('saved') && JSON.parse($('saved').textContent);
if (data) {
	$('save').hidden = true;
	openSaved(data);
} else {
	server.takeToken();
	setSource('none', 'connecting');
	fetch('single.html').then(answer => answer.text()).then(text => {
		single = text;
	}).catch(() => {
		$('save').hidden = true;
	});
	stayConnected(board, takeTold);
}
