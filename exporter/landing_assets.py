"""The style and the script that stand inside the landing page."""

from __future__ import annotations

STYLE = """
:root{--bg:#f6f7f9;--card:#fff;--ink:#1b2430;--dim:#5b6675;--line:#e2e6ec;--ok:#12754a;--bad:#b3261e;
--faint:#8390a0;--alarm:#fdeceb;
--measured:#12754a;--estimate:#8a5a00;--lower_bound:#5b45b0;--lagging:#1a5fb4}
@media(prefers-color-scheme:dark){:root{--bg:#12161c;--card:#1b212a;--ink:#e6eaf0;--dim:#9aa6b5;--line:#2c3542;
--ok:#4cc38a;--bad:#ff8a80;--faint:#7a8696;--alarm:#38201f;--measured:#4cc38a;--estimate:#e2b04a;--lower_bound:#b3a3f5;--lagging:#7cb3f5}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:90rem;padding:1rem;background:var(--bg);color:var(--ink);
font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
body>header{display:flex;flex-wrap:wrap;align-items:baseline;gap:.25rem 1rem}
h1{font-size:1.5rem;margin:0}
body>header p{margin:0;color:var(--dim);flex:1 1 auto}
nav a{color:var(--lagging);margin-right:.75rem}
h2{font-size:1.05rem;margin:1.5rem 0 .5rem}
.card h2{margin:0 0 .5rem}
h3{font:600 .95rem/1.4 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;margin:0;overflow-wrap:break-word}
.state{margin:.75rem 0}
time,small,.hint{color:var(--dim)}
time{white-space:nowrap}
h2 small{font-weight:400;font-size:.85rem;margin-left:.5rem;overflow-wrap:anywhere}
.cards{columns:26rem;column-gap:.75rem}
.cards .card{break-inside:avoid;margin-bottom:.75rem}
.card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.75rem .9rem;
min-width:0;overflow-x:auto}
.card p{margin:.2rem 0 .5rem;color:var(--dim);font-size:.87rem}
.card header{display:flex;gap:.75rem;justify-content:space-between;align-items:baseline}
.card .alone{margin:0;color:var(--ink);font-size:1rem;font-variant-numeric:tabular-nums;text-align:right}
.alone b{white-space:nowrap}.alone small{display:block;font-size:.78rem;white-space:nowrap}
.tag{font:600 .72rem/1 system-ui,sans-serif;border:1px solid currentColor;border-radius:1rem;padding:.12rem .5rem;
white-space:nowrap;display:inline-block;vertical-align:middle}
.measured{color:var(--measured)}.estimate{color:var(--estimate)}
.lower_bound{color:var(--lower_bound)}.lagging{color:var(--lagging)}
table{border-collapse:collapse;width:100%;font-size:.87rem}
th{text-align:left;font-weight:500;color:var(--dim);font-size:.78rem}
th,td{padding:.2rem .6rem .2rem 0;border-top:1px solid var(--line);white-space:nowrap;vertical-align:top}
td.long,td.name,.error td{white-space:normal;overflow-wrap:anywhere}
td.long{min-width:7.5rem}
td.name{min-width:7.4rem}
td.name small{white-space:nowrap}
thead th{border-top:0}
.n{text-align:right;padding-right:0;padding-left:.5rem;font-variant-numeric:tabular-nums;white-space:nowrap}
.wide{margin:.75rem 0}
.bar{width:6rem;height:.6rem;vertical-align:baseline;margin-right:.3rem}
.bar .room{fill:var(--line)}.bar .used{fill:var(--lagging)}.bar.full .used{fill:var(--bad)}
.bar .high{fill:var(--ink)}.bar .notch{fill:var(--card)}
.gpus td{vertical-align:baseline}
.gpus .use{padding-left:1.2rem}
.gpus .n small{display:block}
.none{color:var(--dim)}
.engine{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .9rem .75rem;
margin:.75rem 0}
.engine h2{margin:0 0 .5rem;overflow-wrap:anywhere}
.engine h2 .bad,.age{font-size:.85rem;margin-left:.4rem}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:.5rem;margin:0}
.tile{border-left:3px solid var(--line);padding:.1rem .3rem .1rem .6rem}
.tiles dt{font-size:.8rem;color:var(--dim)}
.tiles dd{margin:0;font-variant-numeric:tabular-nums}
.tiles dd>*{display:block}
.tiles .large{font-size:1.4rem;line-height:1.25;font-weight:600}
.tiles .unit{font-size:.95rem}
.tiles .none{color:var(--dim);font-weight:400}
.tiles small.estimate{color:var(--estimate)}.tiles small.lower_bound{color:var(--lower_bound)}
.tiles small.lagging{color:var(--lagging)}
.alarm{border-left:3px solid var(--bad);background:var(--alarm)}
.old{--ink:var(--faint);--dim:var(--faint);--ok:var(--faint);--measured:var(--faint);--estimate:var(--faint);
--lower_bound:var(--faint);--lagging:var(--faint);color:var(--ink)}
.card.old,.engine.old{border-style:dashed}
.age{color:var(--bad);font:600 .8rem/1.4 system-ui,sans-serif;white-space:nowrap}
.ok{color:var(--ok)}.bad,.error td{color:var(--bad)}
.error td{border-top:0;padding-top:0}
.state b{display:inline-block;margin-right:.6rem;font-size:1.1rem}
#lost{font-weight:600}
#lost:not([hidden])~main{opacity:.5}
@media(max-width:40rem){
.rows thead{display:none}
.rows tr{display:flex;flex-wrap:wrap;column-gap:1rem;border-top:1px solid var(--line);padding:.2rem 0}
.rows tr.error{border:0}
.rows td{border:0;padding:.1rem 0;white-space:normal;overflow-wrap:anywhere;min-width:0;text-align:left}
.rows .name{flex:1 0 100%}
.gpus .use{padding-left:0}
.gpus .n small{display:inline}
[data-is]:not(:empty)::before{content:attr(data-is) " ";color:var(--dim)}
.card td,.card th{white-space:normal;padding-right:.35rem}
.card td:not(.n){overflow-wrap:anywhere;min-width:2rem}
}
"""

SCRIPT = """
setInterval(async()=>{if(document.hidden)return;let lost=false;try{
const answer=await fetch("/",{cache:"no-store",signal:AbortSignal.timeout(5000)});
const page=new DOMParser().parseFromString(await answer.text(),"text/html");
const fresh=page.querySelector("main");if(!answer.ok||!fresh)throw 0;
if(!String(getSelection()))document.querySelector("main").replaceWith(document.adoptNode(fresh));
}catch(_){lost=true}document.getElementById("lost").hidden=!lost},2000)
"""
