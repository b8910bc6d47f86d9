import { expect, test } from "vitest";
import { containerNames } from "../functions/facts/container-name.ts";
import { captureOf, output } from "./rules/captures.ts";

const CRI = `CONTAINER           IMAGE               CREATED             STATE               NAME                ATTEMPT             POD ID              POD
9d01f6bb72c11       4a6d8ab0f1c7a       3 weeks ago         Running             kube-proxy          0                   c0b5a1e6f2d31       kube-proxy-2vz8h
ab20d7710fe22       02f9c3d1e8a11       2 weeks ago         Exited              coredns             3                   e11b0c9f7ad02       coredns-6b94694fcb-l8sjc
`;
const DOCKER = `CONTAINER ID   IMAGE   COMMAND   CREATED   STATUS   PORTS   NAMES
77f0aa12be90   5b1e8a0a6c4c   "/hyperkube proxy"   2 hours ago   Up 2 hours             k8s_kube-proxy_kube-proxy-x2_kube-system_0a1b_0
`;

test("a log that was asked for by the container's id has the container's name, as far as a listing tells", () => {
  const named = containerNames(captureOf(output("crictl ps -a", CRI), output("docker ps", DOCKER), output("crictl logs 9d01f6bb72c11", "x")));
  expect(named(["crictl", "logs", "--tail", "20", "9d01f6bb72c11"])).toEqual(["crictl", "logs", "--tail", "20", "k8s_kube-proxy_"]);
  expect(named(["crictl", "logs", "ab20d7710f"])).toEqual(["crictl", "logs", "k8s_coredns_"]);
  expect(named(["docker", "logs", "77f0aa12be90"])).toEqual(["docker", "logs", "k8s_kube-proxy_"]);
  // unknown, no log, or a name already
  for (const argv of [
    ["crictl", "logs", "ffffffffffff"],
    ["crictl", "inspect", "9d01f6bb72c11"],
    ["crictl", "logs", "kube-proxy"],
  ])
    expect(named(argv)).toEqual(argv);
});

test("without a listing nothing is guessed", () => {
  const argv = ["crictl", "logs", "9d01f6bb72c11"];
  expect(containerNames(captureOf(output("crictl logs 9d01f6bb72c11", CRI)))(argv)).toEqual(argv);
});
