import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";

const root = document.getElementById("root");
if (root === null) throw new Error("The page has no #root");
// A file that is dropped beside the places for it must not take the page away.
for (const type of ["dragover", "drop"]) window.addEventListener(type, (event) => event.preventDefault());
createRoot(root).render(<App />);
