declare module "virtual:worker" {
  const text: string;
  export default text;
}
