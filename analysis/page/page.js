// Draws each block of charts from the data beside it; colours follow the page's scheme; keys below a chart hide lines.
(() => {
  "use strict";
  const places = new Map(); // where on the page each plot stands
  const plots = () => [...Bokeh.index.roots].filter((view) => view.request_repaint);
  const repaint = () => { for (const view of plots()) view.request_repaint(); };
  // paper is narrower and white, and waits for nothing: a picture of each chart stands in for it
  const forPaper = () => {
    document.documentElement.dataset.paper = "yes";
    for (const view of plots()) {
      view.after_resize();
      view.invalidate_painters();
      view.repaint();
      const picture = view.export("png", true).canvas;
      picture.className = "paper";
      document.getElementById(places.get(view.model.id)).after(picture);
    }
  };
  const forScreen = () => {
    delete document.documentElement.dataset.paper;
    for (const picture of document.querySelectorAll("canvas.paper")) picture.remove();
    for (const view of plots()) view.after_resize();
    repaint();
  };
  const hide = (documents) => (event) => {
    const key = event.target.closest("button[data-lines]");
    if (key === null) return;
    const shown = key.getAttribute("aria-pressed") === "false";
    key.setAttribute("aria-pressed", String(shown));
    for (const id of key.dataset.lines.split(" "))
      for (const each of documents) { const line = each.get_model_by_id(id); if (line) line.visible = shown; }
  };
  const draw = async () => {
    Bokeh.set_log_level("error");
    for (const data of document.querySelectorAll("script[type='application/json'][data-charts]")) {
      const { doc, roots } = JSON.parse(data.textContent);
      for (const [id, place] of Object.entries(roots)) places.set(id, place);
      await Bokeh.embed.embed_items({ doc }, [{ docid: "doc", roots, root_ids: Object.keys(roots) }]);
    }
    // a finger that drags is scrolling the page
    if (matchMedia("(pointer: coarse)").matches)
      for (const each of Bokeh.documents)
        for (const root of each.roots()) root.toolbar.tools.forEach((tool) => { if (tool.type === "BoxZoomTool") tool.active = false; });
    document.addEventListener("click", hide(Bokeh.documents));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    addEventListener("beforeprint", forPaper);
    addEventListener("afterprint", forScreen);
    document.documentElement.dataset.drawn = "yes";
  };
  draw();
})();
