/* Shows the runs that are in the page, and unpacks what draws them when their words can be read. */
"use strict";
(function (L) {
  const text = (id) => document.getElementById(id).textContent;
  L.show(document.getElementById("leadline"), JSON.parse(text("runs")));

  /** The drawing library, as a script whose digest the policy of the page names. */
  async function unpack() {
    const bytes = Uint8Array.from(atob(text("plotly")), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    L.draws(window.Plotly);
  }

  requestAnimationFrame(() => setTimeout(unpack));
})(window.Leadline);
