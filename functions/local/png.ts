const SIGN = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** True for the bytes of a PNG, whatever the file is called: only such files are shown as pictures. */
export const isPng = (data: Buffer): boolean => data.subarray(0, SIGN.length).equals(SIGN);
