/** Methods without parameters or result. */

/** `{}` */
export type Empty = Readonly<Record<string, never>>;
