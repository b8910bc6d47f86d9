/** The part of the SDK that lambda-work.ts loads when it is needed. A file of its own, so that a bundler sees which part that is. */
export { InvokeCommand, LambdaClient, SendDurableExecutionCallbackSuccessCommand } from "@aws-sdk/client-lambda";
