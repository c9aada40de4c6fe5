"use strict";
(() => {
  const events = document.getElementById("events");
  const first = events.dataset.after || "0";
  const source = new EventSource(location.pathname.replace("/incidents/", "/api/v1/incidents/") + "/events?after=" + first);
  source.onmessage = (message) => {
    const told = JSON.parse(message.data);
    const line = document.createElement("li");
    const when = document.createElement("span");
    when.className = "quiet";
    when.textContent = new Date(told.at * 1000).toISOString().slice(0, 19).replace("T", " ") + " ";
    line.append(when, told.text);
    events.append(line);
  };
  source.addEventListener("work", (message) => {
    const told = JSON.parse(message.data);
    document.getElementById("work").textContent = told.text;
    if (!told.done) return;
    const note = document.querySelector("textarea");
    // somebody writes: what they wrote must not go with the page
    if (note && note.value) { document.getElementById("fresh").hidden = false; return; }
    source.close();
    location.reload();
  });
})();
