// Browsers start no workers for pages that are opened from the file system. The search of this site runs in one: here a
// hidden frame takes its place, which loads the same script and passes the same messages.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.onmessage = this.onerror = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      // What a worker calls to answer, and to load more.
      inside.postMessage = (data) => this.tell(new MessageEvent("message", { data }));
      inside.importScripts = (...scripts) =>
        scripts.reduce((before, script) => before.then(() => this.load(script)), Promise.resolve());
      this.ready = this.load(String(address));
      this.ready.catch(() => this.tell(new ErrorEvent("error", { message: `cannot load ${address}` })));
    }

    load(script) {
      const inside = this.frame.contentDocument;
      return new Promise((loaded, failed) => {
        const element = inside.createElement("script");
        element.src = new URL(script, location.href).href;
        element.onload = loaded;
        element.onerror = failed;
        inside.head.append(element);
      });
    }

    tell(event) {
      this.dispatchEvent(event);
      const listener = this[`on${event.type}`];
      if (listener) listener.call(this, event);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
