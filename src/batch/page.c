#include "batch/page.h"

/* Colours are variables, set once for light and once for dark. */
static const char style[] =
	":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--text:#1c2430;--soft:#5c6675;"
	"--line:#d9dee5;--a:#7a8596;--b:#2f6fde;--slower:#c8332b;--faster:#1c8a4b;"
	"--undecided:#a86a00;--same:#5c6675}\n"
	"@media(prefers-color-scheme:dark){:root{--page:#12161c;--card:#1b212a;--text:#e6eaf0;"
	"--soft:#9aa5b4;--line:#313a47;--a:#97a2b3;--b:#6ea3ff;--slower:#ff7a70;--faster:#58cf8b;"
	"--undecided:#f0b450;--same:#9aa5b4}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0;background:var(--page);color:var(--text);"
	"font:16px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}\n"
	"main{max-width:1080px;margin:0 auto;padding:1rem}\n"
	"h1{font-size:1.4rem;margin:.4rem 0}h2{font-size:1.15rem;margin:2rem 0 .5rem}\n"
	"h3{font-size:1rem;margin:0;overflow-wrap:anywhere;font-weight:600}\n"
	"a{color:var(--b)}p{margin:.3rem 0}.soft{color:var(--soft);font-size:.9rem}\n"
	".key{display:inline-block;width:.8em;height:.8em;border-radius:50%;margin-right:.35em}\n"
	".key.a{background:var(--a)}.key.b{background:var(--b)}\n"
	".file{overflow-wrap:anywhere}\n"
	".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.5rem;"
	"margin:.6rem 0}\n"
	".tiles button{padding:.5rem .7rem;border:1px solid var(--line);"
	"border-radius:.5rem;background:var(--card);color:inherit;font:inherit;text-align:left;"
	"cursor:pointer}\n"
	".tiles button[aria-pressed=true]{outline:2px solid var(--b);outline-offset:-1px}\n"
	".tiles b{display:block;font-size:1.35rem;line-height:1.2}\n"
	".slower{color:var(--slower)}.faster{color:var(--faster)}\n"
	".undecided{color:var(--undecided)}.same{color:var(--same)}\n"
	"svg{display:block;width:100%;height:auto}\n"
	".panel,.card{background:var(--card);border:1px solid var(--line);border-radius:.5rem}\n"
	".panel{padding:.6rem}\n"
	".cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,30rem),1fr));"
	"gap:.6rem}\n"
	".card{padding:.7rem;content-visibility:auto;contain-intrinsic-size:auto "
	"12rem;min-width:0}\n"
	".card[hidden]{display:none}\n"
	".top{display:flex;gap:.8rem;justify-content:space-between;align-items:baseline}\n"
	".verdict{font-weight:600;white-space:nowrap}\n"
	".nums{display:flex;flex-wrap:wrap;gap:.1rem 1rem;font-variant-numeric:tabular-nums}\n"
	".axis{display:flex;justify-content:space-between;color:var(--soft);font-size:.8rem;"
	"font-variant-numeric:tabular-nums}\n"
	"input{width:100%;padding:.55rem .7rem;font:inherit;color:inherit;background:var(--card);"
	"border:1px solid var(--line);border-radius:.5rem;margin:.2rem 0 .6rem}\n"
	".fa{fill:var(--a)}.fb{fill:var(--b)}.sa{stroke:var(--a)}.sb{stroke:var(--b)}\n"
	".grid{stroke:var(--line)}.band{fill:var(--line);opacity:.45}\n"
	"g.slower,circle.slower{stroke:var(--slower);fill:var(--slower)}\n"
	"g.faster,circle.faster{stroke:var(--faster);fill:var(--faster)}\n"
	"g.undecided,circle.undecided{stroke:var(--undecided);fill:var(--undecided)}\n"
	"g.same,circle.same{stroke:var(--same);fill:var(--same)}\n"
	".controls{display:flex;flex-wrap:wrap;gap:.3rem "
	"1rem;align-items:center;margin-bottom:.6rem}\n"
	".controls input{flex:1 1 16rem;width:auto;margin:0}\n"
	"select{font:inherit;color:inherit;background:var(--card);border:1px solid var(--line);"
	"border-radius:.4rem;padding:.25rem .4rem}\n"
	".group{grid-column:1/-1;margin:.8rem 0 .1rem;font-size:1.02rem}\n"
	".command{display:block;font-size:.82rem;overflow-wrap:anywhere;margin-top:.35rem;color:"
	"var(--soft)}\n"
	".overview{display:block;width:100%;height:260px;cursor:pointer}\n"
	".here{outline:3px solid var(--b)}\n"
	".oa{fill:none;stroke:var(--a)}.ob{fill:none;stroke:var(--b)}\n"
	"ul{margin:.3rem 0;padding-left:1.2rem;overflow-wrap:anywhere}\n";

/* Filters by verdict (the tiles) and by text; without it the page shows everything. */
static const char script[] =
	"const cards=[...document.querySelectorAll('.card')],tiles=[...document.querySelectorAll("
	"'.tiles button')],box=document.querySelector('input');\n"
	"function show(){const words=box.value.toLowerCase();for(const card of cards){"
	"const on=tiles.filter(t=>t.getAttribute('aria-pressed')=='true'&&"
	"t.dataset.metric==card.dataset.metric);\n"
	"card.hidden=(on.length&&!on.some(t=>t.dataset.verdict==card.dataset.verdict))||"
	"!card.textContent.toLowerCase().includes(words)}}\n"
	"for(const tile of tiles)tile.onclick=()=>{tile.setAttribute('aria-pressed',"
	"tile.getAttribute('aria-pressed')!='true');show()};\n"
	"box.oninput=show;\n";

void page_open(struct buf *out, const char *title)
{
	buf_printf(out,
		   "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		   "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		   "<title>%s</title>\n<style>\n%s</style></head><body><main>\n<h1>%s</h1>\n",
		   title, style, title);
}

void page_search(struct buf *out, const char *what)
{
	buf_printf(out, "<input type=\"search\" placeholder=\"%s\" aria-label=\"%s\">\n", what,
		   what);
}

void page_close(struct buf *out)
{
	buf_printf(out, "</main><script>\n%s</script></body></html>\n", script);
}
