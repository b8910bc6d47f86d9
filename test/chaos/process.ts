import { type ChildProcess, fork } from "node:child_process";
import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundleProgram } from "./bundle.ts";
import type { LifeMemory, LifePlan, LifeState, Question } from "./life.ts";

/** Made once by each process that starts some. */
let program: Promise<string> | undefined;

/** The process ended while something was asked of it. */
export class Died extends Error {
  override readonly name = "Died";
}

/** A process of netcheck, as its parent sees it. Everything that is asked of it throws {@link Died} once it is dead. */
export class Life {
  readonly #child: ChildProcess;
  readonly #answers = new Map<number, (answer: unknown) => void>();
  readonly #ended: Promise<never>;
  readonly #url: Promise<string>;
  #stderr = "";
  #asked = 0;
  #dead = false;

  /** A new process. @param life numbers the lives on one folder */
  static async begin(plan: LifePlan, life: number): Promise<Life> {
    program ??= bundleProgram("test/chaos/life.ts", "chaos");
    return new Life(await program, plan, life);
  }

  private constructor(file: string, plan: LifePlan, life: number) {
    const told = join(plan.directory, `life-${life}.json`);
    writeFileSync(told, JSON.stringify(plan));
    this.#child = fork(file, [told], {
      execArgv: ["--expose-gc"],
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      // what was compiled once need not be compiled by each of some hundred processes
      env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "netcheck-compile-cache") },
    });
    this.#child.stderr?.on("data", (chunk: Buffer) => (this.#stderr += chunk.toString("utf8")));
    this.#ended = new Promise((_, reject) => {
      this.#child.once("exit", (code, signal) => {
        this.#dead = true;
        reject(signal === "SIGKILL" ? new Died("killed") : new Error(`the process ended with ${code ?? signal}: ${this.#stderr.slice(-2000)}`));
      });
    });
    this.#ended.catch(() => undefined);
    this.#url = new Promise((resolve) => {
      this.#child.on("message", (message: { url?: string; number?: number; answer?: unknown }) => {
        if (message.url !== undefined) resolve(message.url);
        else this.#answers.get(message.number ?? -1)?.(message.answer);
      });
    });
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** What it said on stderr so far. */
  get stderr(): string {
    return this.#stderr;
  }

  /** Where it takes signed requests, once it does. */
  url(): Promise<string> {
    return Promise.race([this.#url, this.#ended]);
  }

  /** Nothing runs any more and nothing is due: all waits for somebody, or for a time to come. */
  async rest(): Promise<void> {
    await this.#ask("rest");
  }

  state(): Promise<LifeState> {
    return this.#ask("state") as Promise<LifeState>;
  }

  memory(): Promise<LifeMemory> {
    return this.#ask("memory") as Promise<LifeMemory>;
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended.catch(() => undefined);
  }

  #ask(question: Question): Promise<unknown> {
    const number = ++this.#asked;
    const answer = new Promise((resolve) => this.#answers.set(number, resolve));
    if (!this.#dead) this.#child.send({ number, question }, () => undefined);
    return Promise.race([answer, this.#ended]).finally(() => this.#answers.delete(number));
  }
}
