// A browser starts no worker for a page that was opened from a disk. There, the search runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<!doctype html><script>
        postMessage = (data) => frameElement.answer(data);
        importScripts = (...names) => Promise.all(names.map((name) => new Promise((done, failed) => {
          const added = document.createElement("script");
          Object.assign(added, { src: name, onload: done, onerror: failed });
          document.head.appendChild(added);
        })));
      <\/script><script src="${new URL(url, location)}"><\/script>`;
      frame.answer = (data) => this.answered(data);
      frame.onload = () => this.started(frame.contentWindow);
      document.documentElement.appendChild(frame);
    }
    answered(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }
    started(inside) {
      this.postMessage = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      this.waiting.forEach((data) => this.postMessage(data));
    }
    postMessage(data) {
      this.waiting.push(data);
    }
  };
}
