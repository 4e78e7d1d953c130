/* A line over time on a canvas, with its last, least and greatest value as text. */

function niceCeiling(value) {
	if (value <= 0)
		return 1;
	const power = 10 ** Math.floor(Math.log10(value));
	return [1, 2, 2.5, 5, 10].map(factor => factor * power).find(step => step >= value * 0.999);
}

/* To draw on a canvas of this size, as sharp as the screen can. */
function contextOf(canvas, width, height) {
	const scale = devicePixelRatio || 1, context = canvas.getContext('2d');
	canvas.style.width = `${width}px`;
	canvas.style.height = `${height}px`;
	canvas.width = Math.round(width * scale);
	canvas.height = Math.round(height * scale);
	context.setTransform(scale, 0, 0, scale, 0, 0);
	return context;
}

/* points: [[ms, value]]; show: the words for a value. */
class Chart {
	constructor(title, show) {
		this.show = show;
		this.value = el('b', {});
		this.canvas = el('canvas', {role: 'img'});
		this.title = title;
		this.element = el('figure', {className: 'chart'}, el('figcaption', {}, title, ' ', this.value), this.canvas);
	}

	draw(points) {
		if (!this.canvas.offsetParent)
			return;
		const width = Math.max(120, this.element.clientWidth - 2), height = 120, left = 64, bottom = 18, top = 6;
		const context = contextOf(this.canvas, width, height);
		const values = points.map(point => point[1]);
		const most = niceCeiling(Math.max(...values, 0));
		const last = values.length ? this.show(values[values.length - 1]) : '–';
		this.value.textContent = last;
		this.canvas.setAttribute('aria-label', `${this.title}: now ${last}, least ${values.length ? this.show(Math.min(...values)) : '–'}, ` +
			`most ${values.length ? this.show(Math.max(...values)) : '–'}`);
		context.font = '11px sans-serif';
		context.fillStyle = cssColour('--quiet');
		context.strokeStyle = cssColour('--line');
		context.textBaseline = 'middle';
		context.textAlign = 'right';
		for (const share of [0, 0.5, 1]) {
			const y = top + (height - top - bottom) * (1 - share);
			context.fillText(this.show(most * share), left - 6, y);
			context.beginPath();
			context.moveTo(left, Math.round(y) + 0.5);
			context.lineTo(width, Math.round(y) + 0.5);
			context.stroke();
		}
		if (!points.length)
			return;
		const from = points[0][0], to = Math.max(points[points.length - 1][0], from + 10000);
		const x = ms => left + (width - left - 2) * (ms - from) / (to - from);
		const y = value => top + (height - top - bottom) * (1 - value / most);
		context.textAlign = 'left';
		context.fillText(showClock(from), left, height - 8);
		context.textAlign = 'right';
		context.fillText(showClock(to), width - 2, height - 8);
		context.strokeStyle = cssColour('--accent');
		context.lineWidth = 1.5;
		context.beginPath();
		let before = null;
		for (const [ms, value] of points) {
			if (before !== null && ms - before < Math.max(15000, (to - from) / 20))
				context.lineTo(x(ms), y(value));
			else
				context.moveTo(x(ms), y(value));
			before = ms;
		}
		context.stroke();
		if (points.length === 1) {
			context.fillStyle = cssColour('--accent');
			context.fillRect(x(from) - 1, y(values[0]) - 1, 3, 3);
		}
	}
}
