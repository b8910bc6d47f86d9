import { type ReactNode, useEffect, useRef, useState } from "react";
import type { SeenFile } from "../workspace.ts";
import { Icon } from "./icons.tsx";

/** A file below a message: text can be read here, a picture is shown, anything can be downloaded. */
export function FileCard({ file }: { file: SeenFile }): ReactNode {
  const [open, setOpen] = useState(false);
  if (file.picture) {
    return (
      <a className="picture" href={file.url} target="_blank" rel="noreferrer">
        <img src={file.url} alt={file.altText} />
      </a>
    );
  }
  return (
    <div className="file">
      <Icon name="file" />
      <div className="file-name">
        {file.text ? (
          <button type="button" className="link" onClick={() => setOpen(true)}>
            {file.title}
          </button>
        ) : (
          <span>{file.title}</span>
        )}
        <span className="faint">
          {file.title === file.name ? "" : `${file.name} · `}
          {size(file.size)}
        </span>
      </div>
      <a className="quiet" href={file.url} download={file.name} aria-label={`Download ${file.name}`} title="Download">
        <Icon name="download" />
      </a>
      {open ? <Viewer file={file} onClose={() => setOpen(false)} /> : null}
    </div>
  );
}

function Viewer({ file, onClose }: { file: SeenFile; onClose: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState<string>();
  useEffect(() => {
    dialog.current?.showModal();
    fetch(file.url)
      .then((response) => response.text())
      .then(setText, () => setText("The file could not be loaded."));
  }, [file.url]);
  const lines = text?.replace(/\n$/, "").split("\n");
  return (
    <dialog className="modal viewer" ref={dialog} onClose={onClose} aria-label={file.name}>
      <header>
        <Icon name="file" />
        <h2>{file.name}</h2>
        <span className="faint">
          {lines === undefined ? "" : `${lines.length} lines · `}
          {size(file.size)}
        </span>
        <button type="button" className="quiet" aria-label="Close" onClick={() => dialog.current?.close()}>
          <Icon name="close" />
        </button>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region has to be reachable by keyboard. */}
      <div className="viewer-text" tabIndex={0}>
        <pre aria-hidden="true" className="numbers">
          {lines?.map((_line, index) => index + 1).join("\n")}
        </pre>
        <pre>{text ?? "Loading…"}</pre>
      </div>
    </dialog>
  );
}

/** "512 B", "4.2 KB" */
export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024 ? `${(bytes / 1024).toFixed(1)} KB` : `${(bytes / 1024 / 1024).toFixed(1)} MB`;
}
