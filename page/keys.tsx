// The list of keys.
import { useEffect, useRef } from "preact/hooks";

const keys: readonly (readonly [string, string])[] = [
  ["/", "search"],
  ["1 2 3", "Services, Try a packet, Node"],
  ["↑ ↓ or k j", "previous and next Service of the table"],
  ["Enter", "open the Service"],
  ["Esc", "clear the search, close this list"],
  ["p", "pause and resume"],
  ["?", "this list"],
];

export function Keys({ onClose }: { readonly onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="keys" aria-labelledby="keys-title" onClose={onClose}>
      <h2 id="keys-title">Keys</h2>
      <dl>
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
